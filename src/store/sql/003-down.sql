-- 003-down.sql -- who serves is then known from its session alone.
ALTER TABLE server
    DROP COLUMN host,
    DROP COLUMN address,
    DROP COLUMN since;

-- 003-up.sql -- who serves, where and since when; written with the epoch, for `holdfast groups`.
ALTER TABLE server
    ADD COLUMN host    text,        -- of the server that raised the epoch
    ADD COLUMN address text,        -- where clients find it
    ADD COLUMN since   timestamptz; -- NULL, as the others are: no server, but a tool

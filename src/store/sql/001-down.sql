-- 001-down.sql -- everything goes: the database is as before the first start.
DROP TABLE notices;
DROP TABLE nsm_client_registrations;
DROP FUNCTION holdfast_fence(bigint, bigint, bigint, bytea);
DROP TABLE server;

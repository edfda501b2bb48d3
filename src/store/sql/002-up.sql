-- 002-up.sql -- what the lock manager keeps, and clients of other protocols (record format 2).
CREATE TABLE clients (
    slot        integer PRIMARY KEY CHECK (slot >= 0 AND slot < 10000000),
    client_id   bigint,
    caller_name text,
    address     text,
    record      bytea NOT NULL
);

CREATE TABLE locks (
    slot      integer PRIMARY KEY CHECK (slot >= 0 AND slot < 10000000),
    client_id bigint,
    fh        bytea,
    record    bytea NOT NULL
);

CREATE TABLE waiters (
    slot      integer PRIMARY KEY CHECK (slot >= 0 AND slot < 10000000),
    client_id bigint,
    fh        bytea,
    record    bytea NOT NULL
);

CREATE TABLE shares (
    slot      integer PRIMARY KEY CHECK (slot >= 0 AND slot < 10000000),
    client_id bigint,
    fh        bytea,
    record    bytea NOT NULL
);

CREATE TABLE tracked (
    slot      integer PRIMARY KEY CHECK (slot >= 0 AND slot < 10000000),
    client_id bigint,
    protocol  text,
    record    bytea NOT NULL
);

-- 001-up.sql -- the server's own row, and the clients of the Network Status Monitor.
--
-- In every table `record` is the record as src/store/record.c describes it, with its checksum: what
-- is loaded. The other columns are for people and their queries; they are written with the record
-- and never read back. Names are shown with what is no printable ASCII as %XX.

-- One row. `epoch` is the fence: it is raised by whoever takes over, and every batch checks it.
CREATE TABLE server (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    txn      bigint NOT NULL, -- number of the last batch
    epoch    bigint NOT NULL,
    record   bytea            -- NULL until the first batch
);
INSERT INTO server (txn, epoch) VALUES (0, 0);

-- One row changed, or nothing of the batch happens: a server that was replaced writes no more.
CREATE FUNCTION holdfast_fence(own_epoch bigint, next_epoch bigint, next_txn bigint,
                               next_record bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE server SET txn = next_txn, epoch = next_epoch, record = coalesce(next_record, record)
        WHERE epoch = own_epoch AND txn = next_txn - 1;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another server has taken over' USING ERRCODE = 'HF076';
    END IF;
END $$;

CREATE TABLE nsm_client_registrations (
    slot          integer PRIMARY KEY CHECK (slot >= 0 AND slot < 10000000),
    client_id     bigint,
    mon_name      text,
    priv          bytea CHECK (octet_length(priv) = 16),
    callback_host text,
    callback_prog bigint,
    callback_vers bigint,
    callback_proc bigint,
    registered_at timestamptz,
    server_epoch  bigint,
    address       text, -- where it registered from: the only place that is called
    local_address text, -- our address that it used
    transport     text,
    told_state    bigint,
    relayed_state bigint,
    record        bytea NOT NULL
);
CREATE INDEX nsm_client_registrations_callback_host ON nsm_client_registrations (callback_host);
CREATE INDEX nsm_client_registrations_mon_name ON nsm_client_registrations (mon_name);
CREATE INDEX nsm_client_registrations_registered_at ON nsm_client_registrations (registered_at);

CREATE TABLE notices (
    slot     integer PRIMARY KEY CHECK (slot >= 0 AND slot < 10000000),
    mon_name text,
    address  text,
    state    bigint,
    record   bytea NOT NULL
);

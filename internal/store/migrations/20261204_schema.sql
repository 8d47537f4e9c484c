-- +goose Up
-- One statement for goose, whose search for the ends of statements allocates 4 MiB for each line.
-- +goose StatementBegin

-- Conventions. No column is NULL: an empty text, an empty blob or a zero means
-- "absent". Times are microseconds since 1970 UTC, ids are 16 bytes, flags
-- are 0 or 1. merchant_id leads every key, so that a sharded PostgreSQL can
-- distribute by it; tables without it are reference tables or claims, as they say.
-- {{bytewise}} makes a text compare by bytes on every engine; {{narrow}} stores a
-- table of small rows in the order of its key if the engine can.

-- Reference table with one row: the id of this installation. epoch only increases; its
-- last value is kept outside the database too, so that a restored backup is
-- recognised. history increases with each cold start, which may be a restore: it began at
-- restored_at, and restored_from is when the last epoch before it was written. proved_at is when
-- the database was last proved to be an older copy. A clean stop leaves stop_token, which is kept
-- outside the database too; the next start takes it. external_id_key is the key of the check in
-- external ids.
CREATE TABLE installation (
    singleton       BIGINT NOT NULL PRIMARY KEY CHECK (singleton = 1),
    id              BYTEA  NOT NULL,
    epoch           BIGINT NOT NULL,
    history         BIGINT NOT NULL,
    restored_at     BIGINT NOT NULL,
    restored_from   BIGINT NOT NULL,
    proved_at       BIGINT NOT NULL,
    stop_token      TEXT   NOT NULL,
    stopped_at      BIGINT NOT NULL,
    external_id_key BYTEA  NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL
);

-- Reference table: settings of the installation that programs keep, such as the
-- sandbox's clock.
CREATE TABLE settings (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- Reference table. number begins every external id of the merchant. limits is a JSON
-- object; that of the platform has the limits of new merchants. The secrets are sealed; the
-- previous one signs too until its time. mac is a keyed hash of the other columns and of the
-- merchant's routes and valid prices: if it does not fit, no new order is accepted.
CREATE TABLE merchants (
    id             BYTEA  NOT NULL PRIMARY KEY,
    number         BIGINT NOT NULL UNIQUE,
    name           TEXT   NOT NULL,
    city           TEXT   NOT NULL,
    webhook_secret BYTEA  NOT NULL,
    previous_webhook_secret BYTEA  NOT NULL,
    previous_webhook_until  BIGINT NOT NULL,
    return_hosts   TEXT   NOT NULL,
    webhook_hosts  TEXT   NOT NULL,
    limits         TEXT   NOT NULL,
    closed_at      BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    mac            BYTEA  NOT NULL
);
CREATE UNIQUE INDEX merchants_name ON merchants (name);

-- Reference table: one contract with one processor each, which the operator named.
-- Orders, sends, receipts, notices and clearing accounts keep the id forever, so no
-- row is removed. merchant_id is empty if all merchants share the account. secrets is
-- sealed, with the token of the address for notices. version increases by each
-- change: every node polls it. While the processor refuses the credentials, suspended_from
-- is the state before, and check_at when they are tried again; that is no change. mac is a keyed
-- hash of the columns that say where money goes: if it does not fit, the account is not opened.
CREATE TABLE accounts (
    id          TEXT {{bytewise}} NOT NULL PRIMARY KEY,
    driver      TEXT   NOT NULL,
    merchant_id BYTEA  NOT NULL,
    settings    TEXT   NOT NULL,
    secrets     BYTEA  NOT NULL,
    state       TEXT   NOT NULL,
    suspended_from TEXT   NOT NULL,
    suspended_at   BIGINT NOT NULL,
    check_at       BIGINT NOT NULL,
    version     BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    mac         BYTEA  NOT NULL
);

-- Reference table: the accounts of a merchant's new orders, in order. The empty method
-- is every method that has no routes of its own. A maximum or share of 0 is none.
CREATE TABLE routes (
    merchant_id BYTEA  NOT NULL REFERENCES merchants (id),
    operation   TEXT   NOT NULL,
    method      TEXT   NOT NULL,
    position    BIGINT NOT NULL,
    account     TEXT {{bytewise}} NOT NULL,
    minimum     BIGINT NOT NULL CHECK (minimum >= 0),
    maximum     BIGINT NOT NULL CHECK (maximum >= 0),
    share       BIGINT NOT NULL CHECK (share >= 0 AND share <= 100),
    PRIMARY KEY (merchant_id, operation, method, position)
);

-- Reference table: what merchants pay, by method and range of instalments. A row holds from
-- since until it is replaced; until is 0 while it holds. Orders keep the prices of their
-- creation, and no row is removed. A maximum of 0 is none. mac is a keyed hash of a replaced row.
CREATE TABLE prices (
    merchant_id       BYTEA  NOT NULL REFERENCES merchants (id),
    method            TEXT   NOT NULL,
    installments_from BIGINT NOT NULL,
    installments_to   BIGINT NOT NULL,
    version           BIGINT NOT NULL,
    basis_points      BIGINT NOT NULL CHECK (basis_points >= 0 AND basis_points <= 10000),
    fixed             BIGINT NOT NULL CHECK (fixed >= 0),
    minimum           BIGINT NOT NULL CHECK (minimum >= 0),
    maximum           BIGINT NOT NULL CHECK (maximum >= 0),
    days              BIGINT NOT NULL CHECK (days >= 0),
    business_days     BIGINT NOT NULL,
    per_installment   BIGINT NOT NULL,
    refunds_fee       BIGINT NOT NULL,
    since             BIGINT NOT NULL,
    until             BIGINT NOT NULL,
    mac               BYTEA  NOT NULL,
    PRIMARY KEY (merchant_id, method, installments_from, installments_to, version)
);

-- Reference table. A secret is kept as a keyed hash; the second one lives during rotation.
-- mac is a keyed hash of the columns that decide what the credential may do.
CREATE TABLE credentials (
    key_id       TEXT   NOT NULL PRIMARY KEY,
    merchant_id  BYTEA  NOT NULL REFERENCES merchants (id),
    label        TEXT   NOT NULL,
    secret_hash  BYTEA  NOT NULL,
    second_hash  BYTEA  NOT NULL,
    second_until BIGINT NOT NULL,
    scopes       TEXT   NOT NULL,
    allowed_ips  TEXT   NOT NULL,
    expires_at   BIGINT NOT NULL,
    revoked_at   BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    mac          BYTEA  NOT NULL
);

-- Reference table: processes that are alive. A node whose heartbeat stops is dead.
CREATE TABLE nodes (
    id         BYTEA  NOT NULL PRIMARY KEY,
    heartbeat  BIGINT NOT NULL,
    clock      BIGINT NOT NULL,
    started_at BIGINT NOT NULL
);

-- The external id is a digest of the reference (payment.ExternalID), so its key
-- is what makes a reference unique per merchant, forever.
CREATE TABLE payins (
    merchant_id     BYTEA  NOT NULL,
    id              BYTEA  NOT NULL,
    external_id     TEXT {{bytewise}} NOT NULL,
    reference_id    TEXT   NOT NULL,
    method          TEXT   NOT NULL,
    amount          BIGINT NOT NULL CHECK (amount > 0),
    status          TEXT   NOT NULL,
    version         BIGINT NOT NULL,
    processor       TEXT   NOT NULL,
    processor_id    TEXT   NOT NULL,
    webhook_url     TEXT   NOT NULL,
    webhook_disabled BIGINT NOT NULL,
    details         TEXT   NOT NULL,
    personal        BYTEA  NOT NULL,
    fingerprint     BYTEA  NOT NULL,
    paid_amount     BIGINT NOT NULL CHECK (paid_amount >= 0),
    refunded_amount BIGINT NOT NULL CHECK (refunded_amount >= 0 AND refunded_amount <= paid_amount),
    disputed_amount BIGINT NOT NULL CHECK (disputed_amount >= 0),
    unapplied_amount BIGINT NOT NULL CHECK (unapplied_amount >= 0),
    fee             BIGINT NOT NULL,
    end_to_end_id   TEXT   NOT NULL,
    late            BIGINT NOT NULL,
    failure         TEXT   NOT NULL,
    expires_at      BIGINT NOT NULL,
    paid_at         BIGINT NOT NULL,
    next_at         BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, id)
);
CREATE UNIQUE INDEX payins_external ON payins (merchant_id, external_id);
CREATE INDEX payins_due ON payins (next_at, merchant_id) WHERE next_at > 0;
-- A list filtered by a rare status or method must not read all orders of its merchant.
-- Common values are left out of an index if that spares the busiest path: a page of them
-- examines a bounded number of orders, by the key (Filter.Scans).
CREATE INDEX payins_status ON payins (merchant_id, status, id);
CREATE INDEX payins_method ON payins (merchant_id, method, id) WHERE method <> 'PIX';
CREATE INDEX payins_end_to_end ON payins (merchant_id, end_to_end_id) WHERE end_to_end_id <> '';

-- The work on the charges of pay-ins at their processors: inserted with the pay-in, and due
-- again when it is to be canceled. A charge that is generated offline has no row. A call may
-- have had an effect if may_exist is 1.
CREATE TABLE charges (
    merchant_id   BYTEA  NOT NULL,
    payin_id      BYTEA  NOT NULL,
    number        BIGINT NOT NULL,
    account       TEXT {{bytewise}} NOT NULL,
    state         TEXT   NOT NULL,
    may_exist     BIGINT NOT NULL,
    attempts      BIGINT NOT NULL,
    next_at       BIGINT NOT NULL,
    claimed_by    BYTEA  NOT NULL,
    first_sent_at BIGINT NOT NULL,
    sent_at       BIGINT NOT NULL,
    outcome       TEXT   NOT NULL,
    cause         TEXT   NOT NULL,
    processor_id  TEXT   NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, payin_id, number)
);
CREATE INDEX charges_due ON charges (account, next_at) WHERE next_at > 0;
CREATE INDEX charges_claimed ON charges (claimed_by) WHERE length(claimed_by) > 0;

-- batch_id is empty if the payout was requested alone. counters are the bits of the
-- counters in limit_counters that the payout was added to; key_hash is empty if none of
-- them is by Pix key. counted_at is when it was approved, if that moved it to another day or
-- night; else 0: created_at has them. approval_mac is a keyed hash of approval and of the columns
-- that say what is paid: a payout is sent only if it is right.
CREATE TABLE payouts (
    merchant_id     BYTEA  NOT NULL,
    id              BYTEA  NOT NULL,
    external_id     TEXT {{bytewise}} NOT NULL,
    reference_id    TEXT   NOT NULL,
    amount          BIGINT NOT NULL CHECK (amount > 0),
    fee             BIGINT NOT NULL,
    status          TEXT   NOT NULL,
    step            TEXT   NOT NULL,
    version         BIGINT NOT NULL,
    processor       TEXT   NOT NULL,
    processor_id    TEXT   NOT NULL,
    pix_key_type    TEXT   NOT NULL,
    webhook_url     TEXT   NOT NULL,
    webhook_disabled BIGINT NOT NULL,
    approval        TEXT   NOT NULL,
    approval_mac    BYTEA  NOT NULL,
    batch_id        BYTEA  NOT NULL,
    counters        BIGINT NOT NULL,
    counted_at      BIGINT NOT NULL,
    key_hash        BYTEA  NOT NULL,
    beneficiary     BYTEA  NOT NULL,
    fingerprint     BYTEA  NOT NULL,
    idempotency_key TEXT   NOT NULL,
    returned_amount BIGINT NOT NULL CHECK (returned_amount >= 0 AND returned_amount <= amount),
    end_to_end_id   TEXT   NOT NULL,
    failure         TEXT   NOT NULL,
    lookups         BIGINT NOT NULL,
    next_at         BIGINT NOT NULL,
    claimed_by      BYTEA  NOT NULL,
    sent_at         BIGINT NOT NULL,
    completed_at    BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, id)
);
CREATE UNIQUE INDEX payouts_external ON payouts (merchant_id, external_id);
-- Payouts to send and payouts to look up are two queues: a worker that reads one
-- must not scan the other. Each is split by processor, so that payouts at one never
-- wait behind those at another.
CREATE INDEX payouts_to_send ON payouts (merchant_id, processor, next_at) WHERE next_at > 0 AND step = 'queued';
CREATE INDEX payouts_to_look_up ON payouts (merchant_id, processor, next_at) WHERE next_at > 0 AND step IN ('accepted', 'unknown');
CREATE INDEX payouts_status ON payouts (merchant_id, status, id) WHERE status <> 'COMPLETED';
CREATE INDEX payouts_claimed ON payouts (claimed_by) WHERE length(claimed_by) > 0;
CREATE INDEX payouts_end_to_end ON payouts (merchant_id, end_to_end_id) WHERE end_to_end_id <> '';
-- The counts of a batch, and its last change, without a look at its payouts.
CREATE INDEX payouts_batch ON payouts (merchant_id, batch_id, status, updated_at) WHERE length(batch_id) > 0;
CREATE INDEX payouts_to_approve ON payouts (next_at, merchant_id) WHERE next_at > 0 AND step = 'approval';

-- Payouts that were accepted together, in the commit of the batch. Its external id is a
-- digest of its reference, as of an order. first_id and last_id are the least and the
-- greatest id of its payouts: they are found in that range of the key, and counted, so no
-- commit of a payout writes a row of its batch. completed_at is 0 until all are final.
CREATE TABLE payout_batches (
    merchant_id  BYTEA  NOT NULL,
    id           BYTEA  NOT NULL,
    external_id  TEXT {{bytewise}} NOT NULL,
    reference_id TEXT   NOT NULL,
    items        BIGINT NOT NULL CHECK (items > 0),
    amount       BIGINT NOT NULL CHECK (amount > 0),
    first_id     BYTEA  NOT NULL,
    last_id      BYTEA  NOT NULL,
    fingerprint  BYTEA  NOT NULL,
    version      BIGINT NOT NULL,
    completed_at BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, id)
);
CREATE UNIQUE INDEX payout_batches_external ON payout_batches (merchant_id, external_id);
CREATE INDEX payout_batches_open ON payout_batches (id) WHERE completed_at = 0;

-- What was done about the approval of a payout: appended, never changed. mac is a keyed hash of the row. The row with number
-- 0 names who requested the payout, and how many approvals are needed.
CREATE TABLE approvals (
    merchant_id BYTEA  NOT NULL,
    payout_id   BYTEA  NOT NULL,
    number      BIGINT NOT NULL,
    action      TEXT   NOT NULL,
    actor       TEXT   NOT NULL,
    reason      TEXT   NOT NULL,
    needed      BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    mac         BYTEA  NOT NULL,
    PRIMARY KEY (merchant_id, payout_id, number)
) {{narrow}};

-- Orders by their personal data: term is a keyed hash of a merchant's value of one field. A
-- worker writes it after the commit of the order. Rows are removed with their orders.
CREATE TABLE search_terms (
    merchant_id BYTEA NOT NULL,
    term        BYTEA NOT NULL,
    order_id    BYTEA NOT NULL,
    PRIMARY KEY (merchant_id, term, order_id)
) {{narrow}};

-- Every pay-in or payout of a merchant up to the id position is in search_terms. The position
-- stays behind the newest orders, because an order is committed later than its id was made.
CREATE TABLE search_positions (
    merchant_id BYTEA NOT NULL,
    operation   TEXT  NOT NULL,
    position    BYTEA NOT NULL,
    PRIMARY KEY (merchant_id, operation)
) {{narrow}};

-- One row per send of a payout to its processor, written before the first byte
-- leaves. At most one of them is undecided.
CREATE TABLE payout_sends (
    merchant_id BYTEA  NOT NULL,
    payout_id   BYTEA  NOT NULL,
    number      BIGINT NOT NULL,
    processor   TEXT   NOT NULL,
    body_hash   BYTEA  NOT NULL,
    node        BYTEA  NOT NULL,
    deadline    BIGINT NOT NULL,
    outcome     TEXT   NOT NULL,
    evidence    TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    ended_at    BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, payout_id, number),
    FOREIGN KEY (merchant_id, payout_id) REFERENCES payouts (merchant_id, id)
) {{narrow}};
CREATE UNIQUE INDEX payout_sends_live ON payout_sends (merchant_id, payout_id)
    WHERE outcome IN ('intent', 'accepted', 'unknown');

-- A refund of a pay-in. Its external id is a digest of its reference, as of an order; one
-- that was made at the processor has no reference.
CREATE TABLE refunds (
    merchant_id     BYTEA  NOT NULL,
    id              BYTEA  NOT NULL,
    payin_id        BYTEA  NOT NULL,
    external_id     TEXT {{bytewise}} NOT NULL,
    reference_id    TEXT   NOT NULL,
    origin          TEXT   NOT NULL,
    amount          BIGINT NOT NULL CHECK (amount > 0),
    status          TEXT   NOT NULL,
    version         BIGINT NOT NULL,
    reason          TEXT   NOT NULL,
    webhook_url     TEXT   NOT NULL,
    webhook_disabled BIGINT NOT NULL,
    fingerprint     BYTEA  NOT NULL,
    refunded_amount BIGINT NOT NULL CHECK (refunded_amount >= 0 AND refunded_amount <= amount),
    end_to_end_id   TEXT   NOT NULL,
    failure         TEXT   NOT NULL,
    completed_at    BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, id)
);
CREATE UNIQUE INDEX refunds_external ON refunds (merchant_id, external_id);
CREATE INDEX refunds_payin ON refunds (merchant_id, payin_id, id);
CREATE INDEX refunds_status ON refunds (merchant_id, status, id) WHERE status <> 'COMPLETED';

-- The part of a refund that gives one received payment back: one order at the processor,
-- under one external id for life. The row is the durable intent of its sends: it is written
-- before the first byte leaves. step, flags and the times are those of package effect, and history
-- is that of the database in which the row was last decided.
CREATE TABLE refund_parts (
    merchant_id   BYTEA  NOT NULL,
    refund_id     BYTEA  NOT NULL,
    number        BIGINT NOT NULL,
    payin_id      BYTEA  NOT NULL,
    receipt_id    BYTEA  NOT NULL,
    processor     TEXT {{bytewise}} NOT NULL,
    payment_id    TEXT   NOT NULL,
    external_id   TEXT {{bytewise}} NOT NULL,
    amount        BIGINT NOT NULL CHECK (amount > 0),
    unapplied     BIGINT NOT NULL CHECK (unapplied >= 0 AND unapplied <= amount),
    surplus       BIGINT NOT NULL,
    taken_from TEXT   NOT NULL,
    fee_refunded  BIGINT NOT NULL CHECK (fee_refunded >= 0),
    step          TEXT   NOT NULL,
    processor_id  TEXT   NOT NULL,
    end_to_end_id TEXT   NOT NULL,
    outcome       TEXT   NOT NULL,
    evidence      TEXT   NOT NULL,
    flags         BIGINT NOT NULL,
    sends         BIGINT NOT NULL,
    laters        BIGINT NOT NULL,
    lookups       BIGINT NOT NULL,
    first_at      BIGINT NOT NULL,
    until_at      BIGINT NOT NULL,
    not_found_at  BIGINT NOT NULL,
    next_at       BIGINT NOT NULL,
    claimed_by    BYTEA  NOT NULL,
    history       BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, refund_id, number),
    FOREIGN KEY (merchant_id, refund_id) REFERENCES refunds (merchant_id, id)
);
CREATE UNIQUE INDEX refund_parts_external ON refund_parts (merchant_id, processor, external_id);
CREATE INDEX refund_parts_payin ON refund_parts (merchant_id, payin_id);
CREATE INDEX refund_parts_end_to_end ON refund_parts (merchant_id, end_to_end_id) WHERE end_to_end_id <> '';
CREATE INDEX refund_parts_to_send ON refund_parts (processor, next_at) WHERE next_at > 0 AND step = 'queued';
CREATE INDEX refund_parts_to_look_up ON refund_parts (processor, next_at) WHERE next_at > 0 AND step IN ('accepted', 'unknown');
CREATE INDEX refund_parts_claimed ON refund_parts (claimed_by) WHERE length(claimed_by) > 0;

-- The postings of an entry share entry_id and add up to zero. number is gapless per merchant
-- over its own accounts, in the order of commits: the statement. Each other account counts
-- its own postings. The key appends to one place per account; a key that begins with entry_id
-- would need an index of the statement, which costs each payout 10 %. entry_number is gapless
-- over all entries of the merchant. entry_hash of the first line is a keyed hash of the entry and
-- of the hash of the entry before; that of the other lines is empty.
CREATE TABLE postings (
    merchant_id   BYTEA  NOT NULL,
    entry_id      BYTEA  NOT NULL,
    line          BIGINT NOT NULL,
    kind          TEXT   NOT NULL,
    subject_id    BYTEA  NOT NULL,
    account       TEXT {{bytewise}} NOT NULL,
    amount        BIGINT NOT NULL CHECK (amount <> 0),
    balance_after BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    number        BIGINT NOT NULL,
    entry_number  BIGINT NOT NULL,
    entry_hash    BYTEA  NOT NULL,
    part_id       BYTEA  NOT NULL,
    PRIMARY KEY (merchant_id, account, number)
) {{narrow}};

-- The sum of an account's postings and how many they are, kept in the same commit. The row of
-- available, which each commit of the merchant writes, has its last entry too: number, hash, time.
CREATE TABLE balances (
    merchant_id BYTEA  NOT NULL,
    account     TEXT {{bytewise}} NOT NULL,
    balance     BIGINT NOT NULL,
    postings    BIGINT NOT NULL,
    entry_number BIGINT NOT NULL,
    entry_hash   BYTEA  NOT NULL,
    entry_at     BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, account),
    CHECK (account LIKE 'clearing:%' OR account = 'written_off' OR (account IN ('owed', 'costs') AND balance <= 0) OR (account NOT IN ('owed', 'costs') AND balance >= 0))
) {{narrow}};

-- What limits count: payouts of a merchant that neither failed nor were canceled. counter is
-- one of the bits of payouts.counters. day is a number of days since 1970 in São Paulo, of
-- the day on which a night began, or 0 for all days; key_hash is a keyed hash of a Pix key, or empty for all keys. Rows change under the lock of the
-- merchant's balances. since is the first of the payouts, or its approval; for all days, payouts
-- does not have those that wait for approval, but amount does.
CREATE TABLE limit_counters (
    merchant_id BYTEA  NOT NULL,
    counter     BIGINT NOT NULL,
    day         BIGINT NOT NULL,
    key_hash    BYTEA  NOT NULL,
    amount      BIGINT NOT NULL CHECK (amount >= 0),
    payouts     BIGINT NOT NULL CHECK (payouts >= 0),
    since       BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, counter, day, key_hash)
) {{narrow}};

-- Locked last in every commit that has events, which numbers them without gaps.
CREATE TABLE event_counters (
    merchant_id BYTEA  NOT NULL PRIMARY KEY,
    last_number BIGINT NOT NULL
) {{narrow}};

-- The last event and the last row of the statement of each merchant that a restore kept, by
-- the history that it began: a cursor of an earlier history continues there. The platform has
-- a row per restore.
CREATE TABLE event_histories (
    merchant_id BYTEA  NOT NULL,
    history     BIGINT NOT NULL,
    last_number BIGINT NOT NULL,
    last_statement BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, history)
) {{narrow}};

CREATE TABLE events (
    merchant_id BYTEA  NOT NULL,
    number      BIGINT NOT NULL,
    id          BYTEA  NOT NULL,
    type        TEXT   NOT NULL,
    subject_id  BYTEA  NOT NULL,
    version     BIGINT NOT NULL,
    body        BYTEA  NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, number)
);
CREATE UNIQUE INDEX events_id ON events (merchant_id, id);

-- Merchants' receivers of events, chosen by their types. position is the number of the last
-- event whose delivery exists: the feed is read on from there. Events up to catch_up_to
-- are sent in order, one at a time. read_to is the highest position so far, set back if a
-- delivery on which the endpoint relied went elsewhere: an earlier event without a delivery
-- was not for the endpoint, or its delivery was removed for its age. secret and
-- previous_secret are sealed. failures counts the failed attempts since the last success,
-- and failed_hours the time, up to counted_at. mac is a keyed hash of the columns that decide who
-- gets which events.
CREATE TABLE webhook_endpoints (
    merchant_id     BYTEA  NOT NULL,
    id              BYTEA  NOT NULL,
    url             TEXT   NOT NULL,
    events          TEXT   NOT NULL,
    description     TEXT   NOT NULL,
    enabled         BIGINT NOT NULL,
    secret          BYTEA  NOT NULL,
    previous_secret BYTEA  NOT NULL,
    previous_until  BIGINT NOT NULL,
    position        BIGINT NOT NULL,
    catch_up_to     BIGINT NOT NULL,
    read_to         BIGINT NOT NULL,
    failures        BIGINT NOT NULL,
    failing_since   BIGINT NOT NULL,
    failed_hours    BIGINT NOT NULL,
    counted_at      BIGINT NOT NULL,
    last_success_at BIGINT NOT NULL,
    last_failure_at BIGINT NOT NULL,
    retry_at        BIGINT NOT NULL,
    version         BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    mac             BYTEA  NOT NULL,
    PRIMARY KEY (merchant_id, id)
);

-- attempts numbers the attempts, the current one included. schedule_step counts
-- the completed ones since the event was last requested: the position in the retry
-- schedule. restarts counts how often the schedule was restarted after failed attempts, as the
-- endpoint recovered. case_id is the case opened when the delivery was last given up. endpoint_id
-- is empty if it goes to the URL of the order.
CREATE TABLE deliveries (
    merchant_id   BYTEA  NOT NULL,
    id            BYTEA  NOT NULL,
    event_number  BIGINT NOT NULL,
    subject_id    BYTEA  NOT NULL,
    endpoint_id   BYTEA  NOT NULL,
    url           TEXT   NOT NULL,
    state         TEXT   NOT NULL,
    attempts      BIGINT NOT NULL,
    schedule_step BIGINT NOT NULL,
    restarts      BIGINT NOT NULL,
    next_at       BIGINT NOT NULL,
    claimed_by    BYTEA  NOT NULL,
    case_id       BYTEA  NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, id),
    FOREIGN KEY (merchant_id, event_number) REFERENCES events (merchant_id, number)
) {{narrow}};
CREATE INDEX deliveries_event ON deliveries (merchant_id, event_number);
CREATE INDEX deliveries_due ON deliveries (merchant_id, next_at) WHERE next_at > 0;
CREATE INDEX deliveries_claimed ON deliveries (claimed_by) WHERE length(claimed_by) > 0;
CREATE INDEX deliveries_open ON deliveries (merchant_id, subject_id) WHERE state = 'pending';
CREATE INDEX deliveries_given_up ON deliveries (merchant_id, url, event_number) WHERE length(endpoint_id) = 0 AND state = 'exhausted';
CREATE INDEX deliveries_endpoint ON deliveries (merchant_id, endpoint_id, event_number) WHERE length(endpoint_id) > 0 AND state <> 'delivered';

-- Ranges of events that are to be sent again: a row is removed when its range is done. The
-- range is by ids, which have the time of the event, within the numbers from next_number to
-- last_number. endpoint_id is empty for every URL that has them.
CREATE TABLE redeliveries (
    merchant_id BYTEA  NOT NULL,
    id          BYTEA  NOT NULL,
    endpoint_id BYTEA  NOT NULL,
    types       TEXT   NOT NULL,
    first_id    BYTEA  NOT NULL,
    end_id      BYTEA  NOT NULL,
    next_number BIGINT NOT NULL,
    last_number BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, id)
);

-- One row per attempt, written when it has ended.
CREATE TABLE delivery_attempts (
    merchant_id BYTEA  NOT NULL,
    delivery_id BYTEA  NOT NULL,
    number      BIGINT NOT NULL,
    status      BIGINT NOT NULL,
    latency     BIGINT NOT NULL,
    error       TEXT   NOT NULL,
    response    TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    ended_at    BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, delivery_id, number),
    FOREIGN KEY (merchant_id, delivery_id) REFERENCES deliveries (merchant_id, id)
);

-- cost is what the processor kept of the payment: the platform bears it. entry_number is that of the
-- ledger entry that books it, or its first part.
CREATE TABLE receipts (
    merchant_id   BYTEA  NOT NULL,
    id            BYTEA  NOT NULL,
    payin_id      BYTEA  NOT NULL,
    processor     TEXT   NOT NULL,
    external_id   TEXT   NOT NULL,
    order_id      TEXT   NOT NULL,
    end_to_end_id TEXT   NOT NULL,
    amount        BIGINT NOT NULL CHECK (amount > 0),
    applied       BIGINT NOT NULL CHECK (applied >= 0 AND applied <= amount),
    cost          BIGINT NOT NULL CHECK (cost >= 0),
    entry_number  BIGINT NOT NULL,
    paid_at       BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, id)
);
CREATE INDEX receipts_payin ON receipts (merchant_id, payin_id);

-- Claims, distributed by their own key: a payment is booked once, for any
-- merchant.
CREATE TABLE receipt_claims (
    processor   TEXT {{bytewise}} NOT NULL,
    external_id TEXT {{bytewise}} NOT NULL,
    merchant_id BYTEA NOT NULL,
    receipt_id  BYTEA NOT NULL,
    PRIMARY KEY (processor, external_id)
) {{narrow}};

-- return_id is the processor's id of the return that the dispute led to.
CREATE TABLE disputes (
    merchant_id BYTEA  NOT NULL,
    id          BYTEA  NOT NULL,
    payin_id    BYTEA  NOT NULL,
    processor   TEXT   NOT NULL,
    external_id TEXT {{bytewise}} NOT NULL,
    payment_id  TEXT   NOT NULL,
    return_id   TEXT {{bytewise}} NOT NULL,
    kind        TEXT   NOT NULL,
    reason      TEXT   NOT NULL,
    amount      BIGINT NOT NULL CHECK (amount > 0),
    taken       BIGINT NOT NULL CHECK (taken >= 0),
    taken_from TEXT   NOT NULL,
    returned    BIGINT NOT NULL CHECK (returned >= 0 AND returned <= taken),
    lost        BIGINT NOT NULL CHECK (lost >= 0),
    status      TEXT   NOT NULL,
    version     BIGINT NOT NULL,
    blocked     BIGINT NOT NULL,
    accepted    BIGINT NOT NULL,
    respond_by  BIGINT NOT NULL,
    submitted_at BIGINT NOT NULL,
    closed_at   BIGINT NOT NULL,
    remind_at   BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, id)
);
CREATE UNIQUE INDEX disputes_external ON disputes (merchant_id, processor, external_id);
CREATE INDEX disputes_payin ON disputes (merchant_id, payin_id);
CREATE INDEX disputes_status ON disputes (merchant_id, status, id);
CREATE INDEX disputes_kind ON disputes (merchant_id, kind, id);
CREATE INDEX disputes_respond ON disputes (merchant_id, respond_by) WHERE respond_by > 0;
CREATE INDEX disputes_remind ON disputes (remind_at) WHERE remind_at > 0;

-- The merchant's answers to disputes: the durable intent of their sends, as refund_parts.
-- summary (text, and names of files) and content (the files) are sealed.
CREATE TABLE dispute_answers (
    merchant_id   BYTEA  NOT NULL,
    dispute_id    BYTEA  NOT NULL,
    number        BIGINT NOT NULL,
    payin_id      BYTEA  NOT NULL,
    processor     TEXT {{bytewise}} NOT NULL,
    external_id   TEXT   NOT NULL,
    action        TEXT   NOT NULL,
    fingerprint   BYTEA  NOT NULL,
    summary       BYTEA  NOT NULL,
    content       BYTEA  NOT NULL,
    step          TEXT   NOT NULL,
    outcome       TEXT   NOT NULL,
    evidence      TEXT   NOT NULL,
    may_exist     BIGINT NOT NULL,
    sends         BIGINT NOT NULL,
    lookups       BIGINT NOT NULL,
    next_at       BIGINT NOT NULL,
    claimed_by    BYTEA  NOT NULL,
    first_sent_at BIGINT NOT NULL,
    sent_at       BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, dispute_id, number)
);
CREATE INDEX dispute_answers_payin ON dispute_answers (merchant_id, payin_id);
CREATE INDEX dispute_answers_due ON dispute_answers (processor, next_at) WHERE next_at > 0;
CREATE INDEX dispute_answers_claimed ON dispute_answers (claimed_by) WHERE length(claimed_by) > 0;

-- Parts of the money of pay-ins that settle later: inserted with the receipt if the order's
-- price says so. What is not settled (gross - fee - taken) is the merchant's pending balance.
CREATE TABLE receivables (
    merchant_id BYTEA  NOT NULL,
    id          BYTEA  NOT NULL,
    payin_id    BYTEA  NOT NULL,
    installment BIGINT NOT NULL,
    gross       BIGINT NOT NULL,
    fee         BIGINT NOT NULL CHECK (fee >= 0),
    taken       BIGINT NOT NULL CHECK (taken >= 0 AND gross - fee - taken >= 0),
    state       TEXT   NOT NULL,
    settles_at  BIGINT NOT NULL,
    settled_at  BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, id)
) {{narrow}};
CREATE INDEX receivables_due ON receivables (settles_at, merchant_id) WHERE state = 'pending';
CREATE INDEX receivables_open ON receivables (merchant_id, settles_at) WHERE state <> 'settled';
CREATE INDEX receivables_day ON receivables (merchant_id, settles_at, id);
CREATE INDEX receivables_payin ON receivables (merchant_id, payin_id);

-- Notices from processors, raw: recorded before they are answered, applied later. One
-- whose source is feed is an entry of a list, with its own retries.
CREATE TABLE notices (
    processor   TEXT {{bytewise}} NOT NULL,
    notice_id   TEXT {{bytewise}} NOT NULL,
    source      TEXT   NOT NULL,
    headers     TEXT   NOT NULL,
    body        BYTEA  NOT NULL,
    state       TEXT   NOT NULL,
    attempts    BIGINT NOT NULL,
    last_error  TEXT   NOT NULL,
    next_at     BIGINT NOT NULL,
    claimed_by  BYTEA  NOT NULL,
    received_at BIGINT NOT NULL,
    applied_at  BIGINT NOT NULL,
    PRIMARY KEY (processor, notice_id)
);
CREATE INDEX notices_due ON notices (processor, next_at) WHERE next_at > 0;
CREATE INDEX notices_claimed ON notices (claimed_by) WHERE length(claimed_by) > 0;

-- Reference table: the lists of processor accounts that are read. One process at a time
-- reads a feed: the one that has claimed its row. The feed is complete up to through.
-- After a restore, transfers are read again from its backup on (rewound), and payouts of
-- the account wait until that is complete (cleared): both are histories of installation.
CREATE TABLE feeds (
    account    TEXT {{bytewise}} NOT NULL,
    feed       TEXT {{bytewise}} NOT NULL,
    cursor     TEXT   NOT NULL,
    through    BIGINT NOT NULL,
    next_at    BIGINT NOT NULL,
    claimed_by BYTEA  NOT NULL,
    failures   BIGINT NOT NULL,
    last_error TEXT   NOT NULL,
    rewound    BIGINT NOT NULL,
    cleared    BIGINT NOT NULL,
    cleared_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (account, feed)
);

-- Transfers that left outside the life of a payout: a processor lists one under an external
-- id of a merchant, and no payout has it, because a restored backup lacks it; or the payout
-- had failed or was canceled; or it is the second transfer of payout_id, with its endToEndId as
-- external_id. total is what left, amount what has not come back; the platform bears it if
-- written_off is 1. adopted_at is when the merchant repeated its request, or when the second
-- transfer proved to be the only one. next_at is when the transfer is looked up.
CREATE TABLE found_transfers (
    merchant_id   BYTEA  NOT NULL,
    id            BYTEA  NOT NULL,
    external_id   TEXT {{bytewise}} NOT NULL,
    processor     TEXT   NOT NULL,
    end_to_end_id TEXT   NOT NULL,
    payout_id     BYTEA  NOT NULL, -- empty unless it is a second transfer
    total         BIGINT NOT NULL,
    amount        BIGINT NOT NULL CHECK (amount >= 0 AND amount <= total),
    written_off   BIGINT NOT NULL,
    adopted_at    BIGINT NOT NULL,
    next_at       BIGINT NOT NULL,
    lookups       BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, external_id)
);
CREATE INDEX found_transfers_next_at ON found_transfers (next_at) WHERE next_at > 0;
CREATE INDEX found_transfers_payout ON found_transfers (merchant_id, payout_id) WHERE length(payout_id) > 0;

-- Our consents to transfers that a processor asks about before it executes them: at most one
-- per external id, committed before the answer. A payout that was paid without a question
-- has a row too: the newest row of an account shows whether its processor asks.
CREATE TABLE consents (
    account     TEXT {{bytewise}} NOT NULL,
    external_id TEXT {{bytewise}} NOT NULL,
    transfer_id TEXT   NOT NULL,
    state       TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (account, external_id)
);
CREATE INDEX consents_newest ON consents (account, created_at, external_id);

-- Cases for manual review. params is a JSON object of what the kind calls for; no
-- column holds prose. While a case with stops_payouts is open, no payout of its
-- merchant is accepted or sent; while one with stops_account is open, none of that
-- account is sent.
CREATE TABLE cases (
    merchant_id BYTEA  NOT NULL,
    id          BYTEA  NOT NULL,
    kind        TEXT   NOT NULL,
    subject_id  BYTEA  NOT NULL,
    amount      BIGINT NOT NULL,
    params      TEXT   NOT NULL,
    stops_payouts BIGINT NOT NULL,
    stops_account TEXT   NOT NULL,
    resolution  TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    closed_at   BIGINT NOT NULL,
    PRIMARY KEY (merchant_id, id)
);
CREATE INDEX cases_subject ON cases (merchant_id, subject_id);
CREATE INDEX cases_open ON cases (merchant_id) WHERE closed_at = 0;
CREATE INDEX cases_stops ON cases (merchant_id) WHERE closed_at = 0 AND stops_payouts = 1;
CREATE INDEX cases_stops_account ON cases (stops_account) WHERE closed_at = 0 AND stops_account <> '';

-- What operators decided about cases: appended, never changed. hash covers the row and
-- the hash of the one before it, so that a changed or missing row is found.
CREATE TABLE decisions (
    merchant_id   BYTEA  NOT NULL,
    number        BIGINT NOT NULL,
    id            BYTEA  NOT NULL,
    case_id       BYTEA  NOT NULL,
    action        TEXT   NOT NULL,
    resolution    TEXT   NOT NULL,
    actor         TEXT   NOT NULL,
    reason        TEXT   NOT NULL,
    evidence      TEXT   NOT NULL,
    params        TEXT   NOT NULL,
    created_at    BIGINT NOT NULL,
    previous_hash BYTEA  NOT NULL,
    hash          BYTEA  NOT NULL,
    PRIMARY KEY (merchant_id, number)
);
CREATE INDEX decisions_case ON decisions (merchant_id, case_id);

-- Reference table: who changed what of the configuration, and why. merchant_id is the zero id for
-- the platform. before_change and after_change are JSON objects of the changed fields, without the
-- values of secrets. Rows are numbered without gaps and chained by keyed hashes; the first one, of the
-- installation's creation, is the lock of the chain.
CREATE TABLE audit (
    number        BIGINT NOT NULL PRIMARY KEY,
    actor         TEXT   NOT NULL,
    reason        TEXT   NOT NULL,
    noun          TEXT   NOT NULL,
    action        TEXT   NOT NULL,
    merchant_id   BYTEA  NOT NULL,
    subject       TEXT   NOT NULL,
    before_change TEXT   NOT NULL,
    after_change  TEXT   NOT NULL,
    created_at    BIGINT NOT NULL,
    previous_hash BYTEA  NOT NULL,
    hash          BYTEA  NOT NULL
);
CREATE INDEX audit_noun ON audit (merchant_id, noun, number);

-- Reference table: a merchant's brand. A merchant without a row shows
-- its name. logo is a small PNG or JPEG, logo_type its media type.
CREATE TABLE brands (
    merchant_id BYTEA  NOT NULL PRIMARY KEY REFERENCES merchants (id),
    title       TEXT   NOT NULL,
    document    TEXT   NOT NULL,
    color       TEXT   NOT NULL,
    logo        BYTEA  NOT NULL,
    logo_type   TEXT   NOT NULL,
    updated_at  BIGINT NOT NULL
);
-- +goose StatementEnd

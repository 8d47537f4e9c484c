-- +goose Up

-- tries counts the attempts that came to an end since the event was last asked
-- for, or since it happened: by them the schedule goes. exception_id is the
-- exception that a person was last told of because this delivery was given up.
-- note says why an exception was closed.
ALTER TABLE deliveries ADD COLUMN tries BIGINT NOT NULL DEFAULT 0;
ALTER TABLE deliveries ADD COLUMN exception_id BYTEA NOT NULL DEFAULT '';
ALTER TABLE exceptions ADD COLUMN note TEXT NOT NULL DEFAULT '';

UPDATE deliveries SET tries = (SELECT count(*) FROM delivery_attempts a
    WHERE a.merchant_id = deliveries.merchant_id AND a.delivery_id = deliveries.id AND a.ended_at > 0);

-- +goose Up

-- restarts counts how often the schedule of a delivery to an endpoint was restarted after failed
-- attempts, as the endpoint recovered.
ALTER TABLE deliveries ADD COLUMN restarts BIGINT NOT NULL DEFAULT 0;

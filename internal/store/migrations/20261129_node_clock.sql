-- +goose Up
-- The wall clock of a process at its last heartbeat: the ids of its orders have this time.
ALTER TABLE nodes ADD COLUMN clock BIGINT NOT NULL DEFAULT 0;

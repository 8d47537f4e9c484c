-- +goose Up
-- The processor's id of the return that a dispute led to. Of a dispute that was stored before, it
-- is taken for a return itself, unless its id says that it is not.
-- +goose StatementBegin
ALTER TABLE disputes ADD COLUMN return_id TEXT {{bytewise}} NOT NULL DEFAULT '';
-- +goose StatementEnd
-- +goose StatementBegin
UPDATE disputes SET return_id = external_id WHERE external_id NOT LIKE 'infracao-%';
-- +goose StatementEnd

-- +goose Up

-- What is to be sent and what is to be asked about are two queues: whoever
-- looks at one must not walk along the other.
CREATE INDEX payouts_to_send ON payouts (merchant_id, next_at) WHERE next_at > 0 AND step = 'queued';
CREATE INDEX payouts_to_ask ON payouts (merchant_id, next_at) WHERE next_at > 0 AND step IN ('accepted', 'unknown');
DROP INDEX payouts_due;

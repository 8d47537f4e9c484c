-- +goose Up

-- A list filtered by a status or a method that few orders have must not walk
-- along all of its merchant's. What most orders have is found soon along the
-- key, and is left out where leaving it out spares the busiest path.
CREATE INDEX payins_status ON payins (merchant_id, status, id);
CREATE INDEX payins_method ON payins (merchant_id, method, id) WHERE method <> 'PIX';
CREATE INDEX payouts_status ON payouts (merchant_id, status, id) WHERE status <> 'COMPLETED';

-- +goose Up

-- Reference table: what payers see of a merchant. A merchant without a row
-- shows its name. logo is a small PNG or JPEG, logo_type its media type.
CREATE TABLE brands (
    merchant_id BYTEA  NOT NULL PRIMARY KEY REFERENCES merchants (id),
    title       TEXT   NOT NULL,
    document    TEXT   NOT NULL,
    color       TEXT   NOT NULL,
    logo        BYTEA  NOT NULL,
    logo_type   TEXT   NOT NULL,
    updated_at  BIGINT NOT NULL
);

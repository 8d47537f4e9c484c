package store

import (
	"context"
	"errors"
)

// SettingClockOffset holds the sandbox clock's lead, as a Go duration.
const SettingClockOffset = "clock-offset"

// SettingCursor begins the names of the cursors over processors' lists.
const SettingCursor = "cursor:"

// SettingChanges begins the names of the cursors over processors' lists of changes.
const SettingChanges = "changes:"

// Setting reads a fact of the installation; "" where it was never set.
func (s *Store) Setting(ctx context.Context, name string) (string, error) {
	var value string
	err := s.readError("setting", s.queryRow(ctx, "SELECT value FROM settings WHERE name = $1", name).Scan(&value))
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return value, err
}

// Setting is Store.Setting within the transaction, which then locks it.
func (tx *Tx) Setting(ctx context.Context, name string) (string, error) {
	var value string
	err := notFound(tx.queryRow(ctx, "SELECT value FROM settings WHERE name = $1"+tx.store.dialect.forUpdate(), name).Scan(&value))
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return value, err
}

// SetSetting writes a fact of the installation.
func (tx *Tx) SetSetting(ctx context.Context, name, value string) error {
	_, err := tx.exec(ctx, `INSERT INTO settings (name, value) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET value = $2`, name, value)
	return err
}

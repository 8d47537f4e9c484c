package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/porteira/porteira/internal/db"
)

// Names of settings.
const (
	SettingSandbox     = "sandbox"      // "true" once porteira dev has opened the database; it stays so
	SettingClockOffset = "clock-offset" // how far the sandbox's clock is ahead, as a Go duration
	SettingPublicURL   = "public-url"   // of the gateway that started last, for commands
	SettingVerified    = "last-verify"  // JSON: when and how porteira verify ended
	SettingBackedUp    = "last-backup"  // JSON: when porteira backup ended

	// SettingReading begins the name of the last reading of an account's money at its processor: JSON.
	SettingReading = "balance-of:"
	// SettingRotation begins the name of the last try of an account's new secrets: its version, accepted or refused, when.
	SettingRotation = "rotation-of:"
)

type setting struct{ name, value string }

var settingTable = newTable("settings", []string{"name"},
	textColumn("name", func(v *setting) *string { return &v.name }),
	textColumn("value", func(v *setting) *string { return &v.value }).as(mutable),
)

var (
	settingUpsert = settingTable.upsert("name")
	settingByName = "SELECT " + settingTable.selected + " FROM settings t WHERE t.name = $1"
)

// scanSetting reads the value of a setting.
func scanSetting(r db.Scanner) (string, error) {
	var v setting
	err := settingTable.scan(r, &v)
	return v.value, err
}

// SetSetting writes a setting of the installation.
func (c *Changes) SetSetting(name, value string) {
	c.settings = append(c.settings, setting{name, value})
	c.count++
}

func (c *Changes) saveSettings(ctx context.Context, tx *db.Tx) error {
	slices.SortStableFunc(c.settings, func(a, b setting) int { return strings.Compare(a.name, b.name) })
	for _, v := range c.settings {
		if err := setSetting(ctx, tx, v); err != nil {
			return fmt.Errorf("setting: %w", err)
		}
	}
	return nil
}

func setSetting(ctx context.Context, tx *db.Tx, v setting) error {
	_, err := tx.Exec(ctx, settingUpsert, settingTable.row(&v)...)
	return err
}

// Setting reads a setting of the installation; "" if it was never set.
func (s *Store) Setting(ctx context.Context, name string) (string, error) {
	value, err := scanSetting(s.db.QueryRow(ctx, settingByName, name))
	if err = s.db.ReadError("setting", err); errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return value, err
}

// SettingsLike reads the settings whose names begin with a text, in the order of their names.
func (s *Store) SettingsLike(ctx context.Context, beginning string) ([]string, error) {
	rows, err := s.db.Query(ctx, "SELECT "+settingTable.selected+" FROM settings t WHERE substr(t.name, 1, $2) = $1 ORDER BY t.name", beginning, len(beginning))
	list, err := db.Collect(rows, err, scanSetting)
	return list, s.db.ReadError("settings", err)
}

// Setting is Store.Setting within the transaction, which locks it.
func (tx *Tx) Setting(ctx context.Context, name string) (string, error) {
	value, err := scanSetting(tx.QueryRow(ctx, settingByName+tx.ForUpdate(), name))
	if err = db.NotFound(err); errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return value, err
}

// SetSetting writes a setting of the installation.
func (tx *Tx) SetSetting(ctx context.Context, name, value string) error {
	return setSetting(ctx, tx.Tx, setting{name, value})
}

package app

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// RotationState is what is known of the new secrets of an account during a rotation.
type RotationState string

// The states of new secrets.
const (
	RotationNone     RotationState = "" // there is no rotation of secrets, or they cannot be tried
	RotationUntested RotationState = "untested"
	RotationAccepted RotationState = "accepted"
	RotationRefused  RotationState = "refused"
)

// rotationSetting names the setting that has the result of the last try.
func rotationSetting(id string) string { return store.SettingRotation + id }

// newSecrets is the processor of an account that is rotating, with its new secrets alone; nil if
// there is no rotation of secrets, or they cannot be tried.
func (a *Admin) newSecrets(v *store.Account) processor.Authenticator {
	if len(v.Secrets.Previous) == 0 || UsesOwnBank(v) {
		return nil
	}
	proc, err := a.Accounts.OpenNew(v)
	if err != nil {
		return nil
	}
	tried, _ := proc.(processor.Authenticator)
	return tried
}

// NewSecrets is what the last try of an account's new secrets found, and when.
func (a *Admin) NewSecrets(ctx context.Context, v *store.Account) (state RotationState, at time.Time, err error) {
	if a.newSecrets(v) == nil {
		return RotationNone, at, nil
	}
	text, err := a.Store.Setting(ctx, rotationSetting(v.ID))
	parts := strings.Split(text, " ")
	if err != nil || len(parts) != 3 || parts[0] != strconv.FormatInt(v.Version, 10) { // of an earlier rotation
		return RotationUntested, at, err
	}
	at, err = time.Parse(time.RFC3339, parts[2])
	return RotationState(parts[1]), at, err
}

// inspectRotation tries the new secrets of an account, without the previous ones, and keeps the result.
func (a *Admin) inspectRotation(ctx context.Context, v *store.Account) []processor.Finding {
	tried := a.newSecrets(v)
	if tried == nil {
		return nil
	}
	f, state := processor.Finding{Check: "new secrets"}, RotationAccepted
	switch err := tried.Authenticate(ctx); {
	case errors.Is(err, processor.ErrCredentials):
		state = RotationRefused
		f.Problem = "The processor refuses them; the previous ones are used: " + err.Error() + "."
		f.Action = "Replace them again with porteira account rotate " + v.ID + " --secret KEY=@FILE."
	case err != nil:
		f.Problem = "It is not known whether the processor accepts them: " + err.Error() + "."
		f.Action = "Test again; end no rotation before they are accepted."
		return []processor.Finding{f}
	default:
		f.Detail = "accepted"
		f.Action = "porteira account rotate " + v.ID + " --finish ends the rotation."
	}
	value := strconv.FormatInt(v.Version, 10) + " " + string(state) + " " + a.Clock.Now().UTC().Format(time.RFC3339)
	if err := a.Store.Transact(ctx, func(tx *store.Tx) error { return tx.SetSetting(ctx, rotationSetting(v.ID), value) }); err != nil {
		f.Action += " (The result could not be stored.)"
	}
	return []processor.Finding{f}
}

// CheckNewSecrets tries the new secrets of an account. Errors: problem kind invalid_state if its processor
// does not accept them, so that the rotation must not end.
func (a *Admin) CheckNewSecrets(ctx context.Context, v *store.Account) error {
	for _, f := range a.inspectRotation(ctx, v) {
		if f.Problem != "" {
			return problem.New(problem.InvalidState, "The new secrets have not been accepted: without the previous ones the account would be suspended. "+f.Problem+" "+f.Action+" --force ends the rotation nevertheless.")
		}
	}
	return nil
}

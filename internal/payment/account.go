package payment

// AccountState is the state of an account at a processor.
type AccountState string

// The states of an account.
const (
	AccountLive      AccountState = "live"      // everything is allowed
	AccountDraining  AccountState = "draining"  // no new orders; everything else goes on
	AccountSuspended AccountState = "suspended" // nothing is sent; what is held stays held
)

// AccountStates lists every state of an account.
var AccountStates = []AccountState{AccountLive, AccountDraining, AccountSuspended}

// AccountUse is a use of an account that has an effect at its processor, or leads to one.
// Questions, notices and feeds have none: they are allowed in every state.
type AccountUse string

// The uses of an account.
const (
	UsePayin    AccountUse = "payin"    // a new pay-in
	UsePayout   AccountUse = "payout"   // a new payout
	UseCharge   AccountUse = "charge"   // a charge of an existing pay-in, or its cancellation
	UseTransfer AccountUse = "transfer" // a send of an existing payout
)

// AccountUses lists every use of an account.
var AccountUses = []AccountUse{UsePayin, UsePayout, UseCharge, UseTransfer}

// accountUses lists the uses that each state allows: the only place that decides it.
var accountUses = map[AccountState]map[AccountUse]bool{
	AccountLive:      {UsePayin: true, UsePayout: true, UseCharge: true, UseTransfer: true},
	AccountDraining:  {UseCharge: true, UseTransfer: true},
	AccountSuspended: {},
}

// Allows reports whether an account in this state may be used so. An unknown state, of a
// later version, allows nothing.
func (s AccountState) Allows(use AccountUse) bool { return accountUses[s][use] }

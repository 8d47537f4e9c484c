package bankapi

import "regexp"

// Repeat is what a contract does with a transfer or refund that is requested again under its id.
type Repeat string

// The kinds of contracts.
const (
	RepeatReturnsFirst Repeat = "returns-first" // shows the first; no second effect
	RepeatRejects      Repeat = "rejects"       // refuses it, CodeIDInUse; no second effect
	RepeatPaysAgain    Repeat = "pays-again"    // a second transfer or refund
	RepeatAsksConsent  Repeat = "asks-consent"  // a second one; transfers are paid only with consent
)

// Repeats lists the kinds of contracts.
var Repeats = []Repeat{RepeatReturnsFirst, RepeatRejects, RepeatPaysAgain, RepeatAsksConsent}

// contractName is the form of a contract's name, which is part of paths and files.
var contractName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// IsContractName reports whether a contract may have the name.
func IsContractName(name string) bool { return contractName.MatchString(name) }

// ContractPath is the path before the API of a contract.
func ContractPath(repeat Repeat, name string) string {
	return "/contracts/" + string(repeat) + "/" + name
}

package accounthttp

import (
	"errors"
	"regexp"
	"strings"
)

// hostsMax bounds the setting of hosts, in bytes.
const hostsMax = 1024

var (
	errHosts = errors.New("must be names of hosts with commas between them, such as pix.bank.example")
	hostForm = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+(:[0-9]{1,5})?$`)
)

// ParseHosts parses a setting: hosts with commas between them, none if it is "". The error says
// what it must be.
func ParseHosts(setting string) ([]string, error) {
	if setting == "" {
		return nil, nil
	}
	list := strings.Split(strings.ToLower(setting), ",")
	for i, host := range list {
		if list[i] = strings.TrimSpace(host); !hostForm.MatchString(list[i]) || len(setting) > hostsMax {
			return nil, errHosts
		}
	}
	return list, nil
}

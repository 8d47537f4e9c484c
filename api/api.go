// Package api is the contract of the HTTP API; every request and answer in the
// tests is validated with it.
//
// The contract is openapi.yaml, which is written by hand. openapi.json is the
// same for machines: go test ./api -update writes it anew.
package api

import _ "embed"

var (
	//go:embed openapi.yaml
	text []byte
	//go:embed openapi.json
	document []byte
)

// OpenAPI is the contract as it is written, in YAML. It must not be changed.
func OpenAPI() []byte { return text }

// JSON is the contract in JSON, as GET /openapi.json answers. It must not be
// changed.
func JSON() []byte { return document }

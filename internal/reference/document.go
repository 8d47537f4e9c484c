package reference

import (
	"encoding/json"
	"fmt"
	"strings"
)

// document is what the page shows of a contract.
type document struct {
	Info struct {
		Title, Version, Description string
	}
	Tags []struct {
		Name, Description string
	}
	Paths      map[string]map[string]operation
	Components struct {
		Schemas    map[string]*schema
		Parameters map[string]parameter
		Responses  map[string]response
	}
}

type operation struct {
	Tags                              []string
	OperationID, Summary, Description string
	Security                          []map[string][]string // nil for credentials
	Parameters                        []parameter
	RequestBody                       *struct {
		Required bool
		Content  map[string]media
	}
	Responses map[string]response
}

type parameter struct {
	Ref                   string `json:"$ref"`
	Name, In, Description string
	Required              bool
	Schema                *schema
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Content     map[string]media
}

type media struct {
	Schema  *schema
	Example any
}

type schema struct {
	Ref                                string `json:"$ref"`
	Type, Format, Description, Pattern string
	Enum                               []any
	Default                            any
	Nullable                           bool
	Minimum, Maximum                   *json.Number
	MinLength, MaxLength               *json.Number
	MinItems, MaxItems                 *json.Number
	Items                              *schema
	Properties                         map[string]*schema
	Required                           []string
}

func parse(text []byte) (*document, error) {
	d := &document{}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("contract: %w", err)
	}
	return d, nil
}

// name is the last part of a reference.
func name(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// parameter and response resolve a reference. An unknown one is an error.
func (d *document) parameter(p parameter) (parameter, error) {
	if p.Ref == "" {
		return p, nil
	}
	found, ok := d.Components.Parameters[name(p.Ref)]
	if !ok {
		return p, fmt.Errorf("contract: no %s", p.Ref)
	}
	return found, nil
}

func (d *document) response(r response) (response, error) {
	if r.Ref == "" {
		return r, nil
	}
	found, ok := d.Components.Responses[name(r.Ref)]
	if !ok {
		return r, fmt.Errorf("contract: no %s", r.Ref)
	}
	return found, nil
}

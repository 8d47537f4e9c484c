package reference

import (
	"encoding/json"
	"fmt"
	"strings"
)

// document is what the page shows of a contract.
type document struct {
	Info struct {
		Title       string `json:"title"`
		Version     string `json:"version"`
		Description string `json:"description"`
	} `json:"info"`
	Tags []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"tags"`
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Schemas    map[string]*schema   `json:"schemas"`
		Parameters map[string]parameter `json:"parameters"`
		Responses  map[string]response  `json:"responses"`
	} `json:"components"`
}

type operation struct {
	Tags        []string              `json:"tags"`
	OperationID string                `json:"operationId"`
	Summary     string                `json:"summary"`
	Description string                `json:"description"`
	Security    []map[string][]string `json:"security"` // nil for credentials
	Parameters  []parameter           `json:"parameters"`
	RequestBody *struct {
		Content map[string]media `json:"content"`
	} `json:"requestBody"`
	Responses map[string]response `json:"responses"`
}

type parameter struct {
	Ref         string  `json:"$ref"`
	Name        string  `json:"name"`
	In          string  `json:"in"`
	Description string  `json:"description"`
	Required    bool    `json:"required"`
	Schema      *schema `json:"schema"`
}

type response struct {
	Ref         string           `json:"$ref"`
	Description string           `json:"description"`
	Content     map[string]media `json:"content"`
}

type media struct {
	Schema  *schema `json:"schema"`
	Example any     `json:"example"`
}

type schema struct {
	Ref         string             `json:"$ref"`
	Type        string             `json:"type"`
	Format      string             `json:"format"`
	Description string             `json:"description"`
	Pattern     string             `json:"pattern"`
	Enum        []any              `json:"enum"`
	Default     any                `json:"default"`
	Nullable    bool               `json:"nullable"`
	Minimum     *json.Number       `json:"minimum"`
	Maximum     *json.Number       `json:"maximum"`
	MinLength   *json.Number       `json:"minLength"`
	MaxLength   *json.Number       `json:"maxLength"`
	MinItems    *json.Number       `json:"minItems"`
	MaxItems    *json.Number       `json:"maxItems"`
	Items       *schema            `json:"items"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
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

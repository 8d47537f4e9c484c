// Package docs holds the pages of this folder that the gateway serves.
package docs

import _ "embed"

//go:embed errors.md
var errors []byte

// Errors is the page about error codes, in Markdown. It must not be changed.
func Errors() []byte { return errors }

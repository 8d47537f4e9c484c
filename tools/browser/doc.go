// Package browser tests the payers' pages with Chromium: it looks, types, prints and waits
// as payers do, and published packages check the pages. It contains tests only.
package browser

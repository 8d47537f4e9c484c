// Package browser walks the payers' pages with Chromium, as payers do: it looks,
// types, prints and waits, and published packages judge what it sees. It holds
// tests only.
package browser

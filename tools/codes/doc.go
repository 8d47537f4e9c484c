// Package codes reads the QR codes and bar codes that internal/checkout/codes
// draws with a reader that is not ours.
package codes

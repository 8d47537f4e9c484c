// Package wire reads and writes the JSON of the API: strict decoding, validation,
// fingerprints, views.
//
// A request body is parsed into a tree, read into the types of a request, and
// validated. Each step adds the invalid fields to one [Errors], so that a client
// sees them all at once. A [Fingerprint] of the body distinguishes a repeated
// request from a different one under the same reference.
package wire

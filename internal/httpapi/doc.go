// Package httpapi serves the merchant API: routes in one table; authenticate, limit, decode,
// call a use case, respond.
package httpapi

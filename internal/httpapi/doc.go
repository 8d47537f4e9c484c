// Package httpapi is the merchant API, a face: routes in one table; authenticate, limit, decode, call a use case, answer.
package httpapi

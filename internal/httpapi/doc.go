// Package httpapi is the merchant API: routes in one file; decode, authenticate, limit, call a flow, answer.
package httpapi

// Package asaas is the driver of Asaas, API version 3: Pix, boleto and card by Asaas' own
// page, refunds, and Pix to any key.
//
// Asaas is not idempotent: a repeated request makes a second charge, transfer or refund. So
// each effect is looked up before it is requested, and one of unknown outcome is never
// repeated by rule. Our external id is the externalReference of charges and transfers, and
// the description of refunds. An answer proves an effect only if it is a 200 with the values
// that were sent, and that there is none only if it is a documented error.
package asaas

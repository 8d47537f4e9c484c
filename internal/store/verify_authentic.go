package store

import (
	"context"
	"math"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// authenticTables are the tables whose rows have a keyed hash. A row that cannot be decoded is a
// defect of the check "rows".
var authenticTables = []opened{
	{"payouts", payoutTable.selected, "id", []byte{}, verifyPage, func(r db.Scanner, keys *db.Keyring, key *any) (payment.ID, bool, error) {
		var p payoutRow
		damaged, err := payoutTable.scanDue(r, &p, key)
		return p.ID, !damaged && !payoutHash.authentic(keys, &p, p.mac), err
	}},
	{"approvals", approvalTable.selected, "payout_id", []byte{}, math.MaxInt32, func(r db.Scanner, keys *db.Keyring, key *any) (payment.ID, bool, error) {
		var v Approval
		err := approvalTable.scan(r, &v, key)
		return v.Payout, err == nil && !approvalHash.authentic(keys, &v, v.mac), err
	}},
	{"webhook_endpoints", endpointTable.selected, "id", []byte{}, math.MaxInt32, func(r db.Scanner, keys *db.Keyring, key *any) (payment.ID, bool, error) {
		var e Endpoint
		damaged, err := endpointTable.scanDue(r, &e, key)
		return e.ID, !damaged && !endpointHash.authentic(keys, &e, e.mac), err
	}},
	{"prices", priceTable.selected, "version", int64(0), math.MaxInt32, func(r db.Scanner, keys *db.Keyring, key *any) (payment.ID, bool, error) {
		var v priceRow
		err := priceTable.scan(r, &v, key)
		return v.merchant, err == nil && !v.until.IsZero() && !priceHash.authentic(keys, &v, v.mac), err
	}},
}

// proveAuthentic checks the keyed hashes of a merchant's rows.
func proveAuthentic(ctx context.Context, q querier, keys *db.Keyring, merchant payment.ID) (Proof, error) {
	p := Proof{Check: "hashes", Proves: "payouts with their approvals, webhook endpoints, replaced prices, accounts, and the merchant's limits, hosts, routes and prices, are as the gateway wrote them", Defects: []Defect{}}
	for i := range authenticTables {
		if err := authenticTables[i].prove(ctx, q, keys, merchant, "was changed or added outside the gateway", &p); err != nil {
			return p, err
		}
	}
	if merchant.IsZero() { // accounts may be shared
		rows, err := q.Query(ctx, allAccounts)
		list, err := db.Collect(rows, err, scanAccount(keys))
		if err != nil {
			return p, err
		}
		for i := range list {
			p.Count++
			if list[i].Damaged != nil {
				p.Defects = append(p.Defects, Defect{ID: list[i].ID, Detail: "the account: " + list[i].Damaged.Error()})
			}
		}
	}
	m, err := readMerchant(ctx, q, keys, merchantByID, merchant[:])
	if err != nil {
		return p, err
	}
	p.Count++
	if m.Damaged != nil {
		p.Defects = append(p.Defects, Defect{ID: merchant.String(), Detail: "limits, hosts, routes or prices of the merchant were changed outside the gateway: new orders are refused. " +
			"Compare them, set them right, and then run porteira merchant accept"})
	}
	return p, nil
}

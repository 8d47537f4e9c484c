package store

// Rows is the rows of a table as the database would store them, by column: ids and
// blobs as bytes, times in microseconds. Sealed columns are empty, and the body of an
// event is its data. A table that is not in g has no rows.
func (g *Given) Rows(table string) []map[string]any {
	switch table {
	case installationTable.name:
		return rowsOf(installationTable, []installationRow{{Installation: g.Installation, singleton: 1}})
	case nodeTable.name:
		return rowsOf(nodeTable, mapped(g.Nodes, func(n Node) nodeRow { return nodeRow{Node: n} }))
	case payinTable.name:
		return rowsOf(payinTable, mapped(g.Payins, func(p NewPayin) payinRow {
			p.schedule()
			return p.payinRow
		}))
	case payoutTable.name:
		return rowsOf(payoutTable, mapped(g.Payouts, func(p NewPayout) payoutRow { return p.payoutRow }))
	case sendTable.name:
		return rowsOf(sendTable, g.Sends)
	case chargeTable.name:
		return rowsOf(chargeTable, g.Charges)
	case receiptTable.name:
		return rowsOf(receiptTable, g.Receipts)
	case disputeTable.name:
		return rowsOf(disputeTable, g.Disputes)
	case answerTable.name:
		return rowsOf(answerTable, mapped(g.Answers, func(a GivenAnswer) answerRow {
			return answerRow{DisputeAnswer: a.DisputeAnswer, fingerprint: a.Fingerprint}
		}))
	case receivableTable.name:
		return rowsOf(receivableTable, g.Receivables)
	case consentTable.name:
		return rowsOf(consentTable, g.Consents)
	case approvalTable.name:
		return rowsOf(approvalTable, g.Approvals)
	case counterTable.name:
		return rowsOf(counterTable, g.Counters)
	case refundTable.name:
		return rowsOf(refundTable, mapped(g.Refunds, func(r GivenRefund) refundRow { return refundRow{Refund: r.Refund, fingerprint: r.Fingerprint} }))
	case partTable.name:
		return rowsOf(partTable, g.RefundParts)
	case caseTable.name:
		return rowsOf(caseTable, g.Cases)
	case foundTable.name:
		return rowsOf(foundTable, g.Found)
	case noticeTable.name:
		return rowsOf(noticeTable, g.Notices)
	case endpointTable.name:
		return rowsOf(endpointTable, g.Endpoints)
	case deliveryTable.name:
		return rowsOf(deliveryTable, g.Deliveries)
	case attemptTable.name:
		return rowsOf(attemptTable, g.Attempts)
	case postingTable.name:
		return rowsOf(postingTable, mapped(g.Postings, func(p Posting) posting { return posting{Posting: p} }))
	case eventTable.name:
		return rowsOf(eventTable, mapped(g.Events, func(e GivenEvent) eventRow { return eventRow{e.Event, e.Data} }))
	default:
		return nil
	}
}

func mapped[T, R any](list []T, row func(T) R) []R {
	rows := make([]R, len(list))
	for i := range list {
		rows[i] = row(list[i])
	}
	return rows
}

func rowsOf[T any](t *tableOf[T], list []T) []map[string]any {
	rows := make([]map[string]any, len(list))
	for i := range list {
		rows[i] = make(map[string]any, len(t.columns))
		for _, c := range t.columns {
			rows[i][c.Name] = c.value(&list[i])
		}
	}
	return rows
}

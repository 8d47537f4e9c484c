package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/porteira/porteira/internal/processor"
)

// budgets exports what is left of the accounts' budgets of requests.
type budgets struct{ accounts processor.Accounts }

var budgetDesc = prometheus.NewDesc("porteira_account_budget_requests", "Requests of an account's budget that this process can make now; absent without a budget.", []string{"account"}, nil)

// Describe implements [prometheus.Collector].
func (budgets) Describe(to chan<- *prometheus.Desc) { to <- budgetDesc }

// Collect implements [prometheus.Collector].
func (c budgets) Collect(to chan<- prometheus.Metric) {
	for _, id := range c.accounts.IDs() {
		if p, ok := c.accounts.Find(id).(processor.Budgeted); ok {
			if left, limited := p.BudgetLeft(); limited {
				to <- prometheus.MustNewConstMetric(budgetDesc, prometheus.GaugeValue, float64(left), id)
			}
		}
	}
}

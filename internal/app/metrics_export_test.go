package app

import (
	"github.com/prometheus/client_golang/prometheus"
)

// RareMetrics are the descriptions of metrics that a gateway without such things does not export.
func RareMetrics() (texts []string) {
	for _, d := range []*prometheus.Desc{certificateDesc, budgetDesc, feedFailuresDesc} {
		texts = append(texts, d.String())
	}
	for i := range factMetrics {
		texts = append(texts, factMetrics[i].description.String())
	}
	return texts
}

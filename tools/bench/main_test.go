package main

import "testing"

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		list []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := median(tt.list); got != tt.want {
			t.Errorf("the median of %v is %v, want %v", tt.list, got, tt.want)
		}
	}
}

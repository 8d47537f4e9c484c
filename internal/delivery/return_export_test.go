package delivery

import (
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// NewReturned builds the operation that returns claimed deliveries of one merchant.
func NewReturned(list []store.Delivery) write.Operation { return &returned{list} }

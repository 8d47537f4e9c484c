// Package simulate is test only: whole gateway under a virtual clock with seeded faults.
package simulate

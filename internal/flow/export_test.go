package flow

// Doubt is what a claim leaves whose COMMIT is unknown.
func (f *Flow) Doubt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.doubtful = true
}

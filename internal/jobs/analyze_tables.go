package jobs

import "context"

// AnalyzeTables tells the database's planner of tables that have grown since it
// was told last.
func (j *Jobs) AnalyzeTables(ctx context.Context) (int, error) {
	n, err := j.Store.AnalyzeGrown(ctx)
	if n > 0 {
		j.Log.InfoContext(ctx, "the database's planner was told of tables that have grown", "tables", n)
	}
	return 0, err // it looks again in its own time
}

package jobs

import "context"

// expireBatch is how many pay-ins expire in one commit.
const expireBatch = 256

// ExpirePayins expires pay-ins whose time is over.
func (j *Jobs) ExpirePayins(ctx context.Context) (int, error) {
	return j.Flow.ExpirePayins(ctx, expireBatch)
}

package sim

// Faults of a call to the bank, before or after its effect.
var callFaults = []string{
	"refused",        // connection refused: provably not sent
	"no_name",        // DNS fails: provably not sent
	"timeout_before", // no effect, no answer
	"timeout_after",  // effect, no answer
	"reset_before",   // the connection breaks, no effect
	"reset_after",    // effect, then the connection breaks
	"503_before",     // a proxy's 503 without effect
	"429_before",     // too many requests
	"401_before",     // credential revoked
	"500_after",      // effect, then 500
	"504_after",      // effect, then a proxy's 504
	"half_json",      // effect, half of the answer
	"not_json",       // effect, a page of HTML
	"gzip",           // effect, an encoded answer
	"huge",           // effect, an answer beyond any limit
	"empty",          // effect, 200 without a body
	"other_id",       // effect, an answer about another order
	"late",           // effect, the answer comes 3 s later
	"twice",          // the request arrives twice
	"notice_first",   // the notice arrives before the answer
}

// transferFaults are faults of a transfer in the bank itself, besides callFaults.
var transferFaults = []string{"refuse", "later", "known", "delayed", "notify_twice", "notify_reordered", "notify_never"}

// refundFaults are faults of a refund in the bank itself, besides callFaults.
var refundFaults = []string{"refuse", "later", "known", "notify_twice", "notify_reordered", "notify_never"}

// registering is a charge whose registration takes a while.
const registering = "registering"

// stale is an old answer to a look-up.
const stale = "stale"

// noticeFaults are faults in the delivery of a notice.
var noticeFaults = []string{"lost", "answer_lost", "twice", "late", "forged", "replayed"}

// questionFaults are faults in the delivery of a question about a transfer.
var questionFaults = []string{"lost", "answer_lost", "twice", "late", "forged"}

// webhookFaults are faults of a receiver.
var webhookFaults = []string{
	"refused", "timeout_before", "timeout_after", "reset_after", "500", "503_retry_after", "429_retry_after",
	"301", "410", "garbage", "huge", "slow",
}

// clientFaults are faults of a request on a merchant's network.
var clientFaults = []string{"lost", "answer_lost"}

// clientActs are the actions of a merchant's program on an acknowledged order.
var clientActs = []string{"repeated", "changed", "at_once", "canceled", "read"}

// payerActs are the actions of payers, the first of which is the normal one, and of the
// bank of a charge.
var payerActs = []string{"paid", "short", "over", "twice", "parts", "stranger", "fail", "expire", "dispute", "win", "lose"}

// bankActs are the actions of the receiving bank on a payout.
var bankActs = []string{"complete", "fail", "return", "part"}

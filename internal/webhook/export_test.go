package webhook

// ParseRetryAfter lets tests read a header without a receiver.
var ParseRetryAfter = parseRetryAfter

// CleanText lets tests clean text without a receiver.
var CleanText = cleanText

// MaxRemembered bounds a limiter's memory.
const MaxRemembered = maxRemembered

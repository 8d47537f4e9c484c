// Package sandbox is the driver of the sandbox's bank: a stateless translation
// of requests and answers, as a driver of a real processor is.
//
// [Processor] is the driver, over a socket or a transport that reaches a bank
// in this process. [Control] calls the bank's routes that force an outcome.
package sandbox

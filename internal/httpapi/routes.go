package httpapi

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/porteira/porteira/internal/store"
)

// class is the priority of a route under overload.
type class int

const (
	read  class = iota // may use every slot
	write              // leaves some slots to reads
	vital              // needs no slot: health, and notices, which have their own limit
)

// Scopes of routes that need none of a credential's: public ones need no credential,
// the others any.
const (
	public        = ""
	anyCredential = "*"
)

// route is one row of the table.
type route struct {
	method string
	path   string
	scope  string
	class  class
	handle func(*API, *call) error
	exists func(*API) bool // nil for always
	anyone bool            // credentials may be missing if the operator allows it
}

// routes is the complete API.
var routes = []route{
	{method: "POST", path: "/payin", scope: store.ScopePayinWrite, class: write, handle: (*API).createPayin, anyone: true},
	{method: "GET", path: "/payin", scope: store.ScopeRead, handle: (*API).listPayins},
	{method: "GET", path: "/payin/{id}", scope: store.ScopeRead, handle: (*API).getPayin},
	{method: "POST", path: "/payin/{id}/cancel", scope: store.ScopePayinWrite, class: write, handle: (*API).cancelPayin},

	{method: "POST", path: "/payout", scope: store.ScopePayoutWrite, class: write, handle: (*API).requestPayout},
	{method: "GET", path: "/payout", scope: store.ScopeRead, handle: (*API).listPayouts},
	{method: "GET", path: "/payout/{id}", scope: store.ScopeRead, handle: (*API).getPayout},
	{method: "POST", path: "/payout/{id}/cancel", scope: store.ScopePayoutWrite, class: write, handle: (*API).cancelPayout},
	{method: "POST", path: "/payout/{id}/approve", scope: store.ScopePayoutApprove, class: write, handle: (*API).approvePayout},
	{method: "POST", path: "/payout/{id}/reject", scope: store.ScopePayoutApprove, class: write, handle: (*API).rejectPayout},

	{method: "POST", path: "/payout-batches", scope: store.ScopePayoutWrite, class: write, handle: (*API).requestPayoutBatch},
	{method: "GET", path: "/payout-batches", scope: store.ScopeRead, handle: (*API).listPayoutBatches},
	{method: "GET", path: "/payout-batches/{id}", scope: store.ScopeRead, handle: (*API).getPayoutBatch},

	{method: "POST", path: "/payin/{id}/refunds", scope: store.ScopeRefundWrite, class: write, handle: (*API).createRefund},
	{method: "GET", path: "/payin/{id}/refunds", scope: store.ScopeRead, handle: (*API).listPayinRefunds},
	{method: "GET", path: "/refunds", scope: store.ScopeRead, handle: (*API).listRefunds},
	{method: "GET", path: "/refunds/{id}", scope: store.ScopeRead, handle: (*API).getRefund},

	{method: "GET", path: "/disputes", scope: store.ScopeRead, handle: (*API).listDisputes},
	{method: "GET", path: "/disputes/{id}", scope: store.ScopeRead, handle: (*API).getDispute},
	{method: "POST", path: "/disputes/{id}/defense", scope: store.ScopeRefundWrite, class: write, handle: (*API).defendDispute},
	{method: "POST", path: "/disputes/{id}/accept", scope: store.ScopeRefundWrite, class: write, handle: (*API).acceptDispute},

	{method: "GET", path: "/balance", scope: store.ScopeRead, handle: (*API).getBalance},
	{method: "GET", path: "/statement", scope: store.ScopeRead, handle: (*API).listStatement},
	{method: "GET", path: "/limits", scope: store.ScopeRead, handle: (*API).getLimits},
	{method: "GET", path: "/prices", scope: store.ScopeRead, handle: (*API).listPrices},
	{method: "GET", path: "/receivables", scope: store.ScopeRead, handle: (*API).listReceivableDays},
	{method: "GET", path: "/receivables/{date}", scope: store.ScopeRead, handle: (*API).listReceivables},

	{method: "GET", path: "/events", scope: store.ScopeRead, handle: (*API).listEvents},
	{method: "GET", path: "/events/{id}", scope: store.ScopeRead, handle: (*API).getEvent},
	{method: "GET", path: "/events/{id}/attempts", scope: store.ScopeRead, handle: (*API).listAttempts},
	{method: "POST", path: "/events/{id}/redeliver", scope: store.ScopeWebhookWrite, class: write, handle: (*API).redeliverEvent},
	{method: "POST", path: "/events/redeliver", scope: store.ScopeWebhookWrite, class: write, handle: (*API).redeliverRange},
	{method: "GET", path: "/webhook-secret", scope: store.ScopeWebhookWrite, handle: (*API).getWebhookSecret},
	{method: "POST", path: "/webhook-secret/rotate", scope: store.ScopeWebhookWrite, class: write, handle: (*API).rotateWebhookSecret},

	{method: "POST", path: "/webhook-endpoints", scope: store.ScopeWebhookWrite, class: write, handle: (*API).createEndpoint},
	{method: "GET", path: "/webhook-endpoints", scope: store.ScopeWebhookWrite, handle: (*API).listEndpoints},
	{method: "GET", path: "/webhook-endpoints/{id}", scope: store.ScopeWebhookWrite, handle: (*API).getEndpoint},
	{method: "PATCH", path: "/webhook-endpoints/{id}", scope: store.ScopeWebhookWrite, class: write, handle: (*API).changeEndpoint},
	{method: "DELETE", path: "/webhook-endpoints/{id}", scope: store.ScopeWebhookWrite, class: write, handle: (*API).deleteEndpoint},
	{method: "POST", path: "/webhook-endpoints/{id}/rotate", scope: store.ScopeWebhookWrite, class: write, handle: (*API).rotateEndpoint},
	{method: "POST", path: "/webhook-endpoints/{id}/test", scope: store.ScopeWebhookWrite, class: write, handle: (*API).testEndpoint},

	{method: "GET", path: "/credential", scope: anyCredential, handle: (*API).getCredential},
	{method: "POST", path: "/credential/rotate", scope: anyCredential, class: write, handle: (*API).rotateCredential},

	{method: "GET", path: "/openapi.json", scope: public, handle: (*API).getContract},
	{method: "GET", path: "/docs", scope: public, handle: (*API).getReference},
	{method: "GET", path: "/docs/errors", scope: public, handle: (*API).getErrorReference},
	{method: "GET", path: "/healthz", scope: public, class: vital, handle: (*API).getHealth},
	{method: "GET", path: "/readyz", scope: public, class: vital, handle: (*API).getReadiness},

	{method: "POST", path: "/sandbox/payin/{id}/{action}", scope: public, class: write, handle: (*API).sandboxPayin, exists: inSandbox},
	{method: "POST", path: "/sandbox/payout/{id}/{action}", scope: public, class: write, handle: (*API).sandboxPayout, exists: inSandbox},
	{method: "POST", path: "/sandbox/refunds/{id}/{action}", scope: public, class: write, handle: (*API).sandboxRefund, exists: inSandbox},
	{method: "POST", path: "/sandbox/faults", scope: public, class: write, handle: (*API).armFault, exists: inSandbox},
	{method: "DELETE", path: "/sandbox/faults", scope: public, class: write, handle: (*API).clearFaults, exists: inSandbox},
	{method: "POST", path: "/sandbox/clock", scope: public, class: write, handle: (*API).advanceClock, exists: inSandbox},
	{method: "GET", path: "/sandbox/processor/transfers", scope: public, handle: (*API).listSandboxTransfers, exists: inSandbox},

	{method: "POST", path: "/inbound/{account}/{token}", scope: public, class: vital, handle: (*API).receiveNotice, exists: hasInbound},
}

func inSandbox(a *API) bool  { return a.sandbox != nil }
func hasInbound(a *API) bool { return a.inbound != nil }

// resource is a path with its methods.
type resource struct {
	methods map[string]*route
	allow   string // the header of a 405
}

// mount builds the router. Each path is registered for every method, because the
// standard router would answer a wrong method in plain text.
func (a *API) mount() *http.ServeMux {
	resources := map[string]*resource{}
	for i := range routes {
		rt := &routes[i]
		if rt.exists != nil && !rt.exists(a) {
			continue
		}
		res := resources[rt.path]
		if res == nil {
			res = &resource{methods: map[string]*route{}}
			resources[rt.path] = res
		}
		res.methods[rt.method] = rt
		if rt.method == http.MethodGet {
			res.methods[http.MethodHead] = rt
		}
	}
	mux := http.NewServeMux()
	for path, res := range resources {
		res.allow = strings.Join(slices.Sorted(maps.Keys(res.methods)), ", ")
		handle := func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, res) }
		mux.HandleFunc(path, handle)
		if strings.HasSuffix(path, "/{token}") { // processors append to the address that they have
			mux.HandleFunc(path+"/{rest...}", handle)
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, nil) })
	return mux
}

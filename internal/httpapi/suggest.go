package httpapi

import (
	"maps"
	"slices"
	"strings"

	"github.com/porteira/porteira/internal/problem"
)

// otherNames are what clients call some parameters, in lower case without separators, and the parameters
// that they may mean.
var otherNames = map[string][]string{
	"cpf": {"customerDocument", "beneficiaryDocument"}, "cnpj": {"customerDocument", "beneficiaryDocument"}, "taxid": {"customerDocument", "beneficiaryDocument"},
	"e2e": {"endToEndId"}, "e2eid": {"endToEndId"}, "page": {"cursor"}, "offset": {"cursor"}, "perpage": {"limit"}, "pagesize": {"limit"}, "size": {"limit"},
	"since": {"createdFrom", "from"}, "startdate": {"createdFrom", "from"}, "until": {"createdTo", "to"}, "to": {"createdTo"}, "enddate": {"createdTo", "to"},
	"chave": {"pixKey"}, "include": {"expand"},
}

// hint is what follows the message about an unknown parameter: the parameter that it may mean, else all.
func (q *query) hint(name string) string {
	known := slices.Sorted(maps.Keys(q.known))
	if len(known) == 0 {
		return ", which has none"
	}
	short := shortName(name)
	for _, other := range otherNames[short] {
		if q.known[other] {
			return ": use " + other
		}
	}
	for _, other := range known {
		o := shortName(other)
		if o == short || len(short) >= 4 && strings.Contains(o, short) || problem.IsNear(o, short) {
			return ": use " + other
		}
	}
	return ", which has " + strings.Join(known, ", ")
}

func shortName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// segmentsMax bounds the paths that are compared.
const segmentsMax = 6

// nearestPath is the path of a route that an unknown path may mean; "" if there is none. It repeats nothing
// of the request.
func (a *API) nearestPath(path string) string {
	asked := strings.Split(strings.Trim(path, "/"), "/")
	if len(asked) > segmentsMax {
		return ""
	}
	for _, list := range [][]string{asked, asked[1:]} { // some put a version first
		for i := range routes {
			rt := &routes[i]
			if rt.exists == nil && isNearPath(strings.Split(rt.path[1:], "/"), list) {
				return rt.path
			}
		}
	}
	return ""
}

// isNearPath reports whether a path is that of a route, but for one word.
func isNearPath(route, asked []string) bool {
	if len(route) != len(asked) {
		return false
	}
	wrong := 0
	for i, word := range route {
		switch {
		case strings.HasPrefix(word, "{") || word == asked[i]:
		case problem.IsNear(word, strings.ToLower(asked[i])) || word == asked[i]+"s" || word+"s" == asked[i]:
			wrong++
		default:
			return false
		}
	}
	return wrong <= 1
}

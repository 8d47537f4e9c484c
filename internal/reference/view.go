package reference

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
)

// contractView is the data of the page of the contract.
type contractView struct {
	Title, Version string
	Intro          template.HTML
	Groups         []groupView
	Schemas        []schemaView
}

type groupView struct {
	Name       string
	About      template.HTML
	Operations []operationView
}

type operationView struct {
	ID, Method, Path, Summary string
	About                     template.HTML
	Public                    bool
	Parameters                []fieldView
	Bodies                    []bodyView
	Answers                   []answerView
}

type bodyView struct {
	Media, Example string
	Schema         schemaView
}

type answerView struct {
	Status string
	About  template.HTML
	Bodies []bodyView
}

// schemaView is a schema of its own, or one inside another. Ref names the one that has it.
type schemaView struct {
	Name, Ref, Type string
	Rules           []string
	About           template.HTML
	Fields          []fieldView
}

type fieldView struct {
	Name, In string
	Required bool
	Schema   schemaView
}

// methods orders the operations of a path.
var methods = []string{"post", "get", "patch", "put", "delete"}

// view is the document as the page shows it: operations by tag, then schemas.
func (d *document) view() (*contractView, error) {
	v := &contractView{Title: d.Info.Title, Version: d.Info.Version, Intro: markdown(d.Info.Description)}
	for _, tag := range d.Tags {
		g := groupView{Name: tag.Name, About: markdown(tag.Description)}
		for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
			for _, method := range methods {
				o, ok := d.Paths[path][method]
				if !ok || !slices.Contains(o.Tags, tag.Name) {
					continue
				}
				shown, err := d.operation(method, path, &o)
				if err != nil {
					return nil, err
				}
				g.Operations = append(g.Operations, shown)
			}
		}
		v.Groups = append(v.Groups, g)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		shown := viewSchema(d.Components.Schemas[name])
		shown.Name = name
		v.Schemas = append(v.Schemas, shown)
	}
	return v, nil
}

func (d *document) operation(method, path string, o *operation) (operationView, error) {
	v := operationView{
		ID: o.OperationID, Method: strings.ToUpper(method), Path: path, Summary: o.Summary, About: markdown(o.Description),
		Public: len(o.Security) == 1 && len(o.Security[0]) == 0,
	}
	for _, p := range o.Parameters {
		p, err := d.parameter(p)
		if err != nil {
			return v, err
		}
		f := fieldView{Name: p.Name, In: p.In, Required: p.Required, Schema: viewSchema(p.Schema)}
		f.Schema.About = markdown(p.Description)
		v.Parameters = append(v.Parameters, f)
	}
	if o.RequestBody != nil {
		v.Bodies = viewBodies(o.RequestBody.Content)
	}
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		r, err := d.response(o.Responses[status])
		if err != nil {
			return v, err
		}
		v.Answers = append(v.Answers, answerView{Status: status, About: markdown(r.Description), Bodies: viewBodies(r.Content)})
	}
	return v, nil
}

func viewBodies(content map[string]media) (list []bodyView) {
	for _, name := range slices.Sorted(maps.Keys(content)) {
		list = append(list, bodyView{Media: name, Example: example(content[name].Example), Schema: viewSchema(content[name].Schema)})
	}
	return list
}

// example is an example as text: JSON, unless it is a text itself.
func example(v any) string {
	if v == nil {
		return ""
	}
	if text, ok := v.(string); ok {
		return text
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(out.String())
}

// viewSchema shows a schema: required fields first, each by name.
func viewSchema(s *schema) schemaView {
	if s == nil {
		return schemaView{}
	}
	if s.Ref != "" {
		return schemaView{Ref: name(s.Ref), Type: name(s.Ref), About: markdown(s.Description)}
	}
	v := schemaView{Type: s.Type, Rules: s.rules(), About: markdown(s.Description)}
	of := s
	if s.Items != nil {
		items := viewSchema(s.Items)
		v.Ref, v.Type, of = items.Ref, "list of "+cmp.Or(items.Ref, items.Type), s.Items
		v.Rules = append(v.Rules, items.Rules...)
	}
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		v.Fields = append(v.Fields, fieldView{Name: name, Required: slices.Contains(of.Required, name), Schema: viewSchema(of.Properties[name])})
	}
	slices.SortStableFunc(v.Fields, func(a, b fieldView) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		default:
			return 1
		}
	})
	return v
}

// rules are what a value must be besides its type.
func (s *schema) rules() (list []string) {
	if s.Format != "" && s.Format != "int64" {
		list = append(list, s.Format)
	}
	between := func(from, to *json.Number, unit string) {
		switch {
		case from != nil && to != nil:
			list = append(list, fmt.Sprintf("%s to %s%s", *from, *to, unit))
		case from != nil:
			list = append(list, fmt.Sprintf("at least %s%s", *from, unit))
		case to != nil:
			list = append(list, fmt.Sprintf("at most %s%s", *to, unit))
		}
	}
	between(s.Minimum, s.Maximum, "")
	between(s.MinLength, s.MaxLength, " characters")
	between(s.MinItems, s.MaxItems, " entries")
	if s.Pattern != "" {
		list = append(list, s.Pattern)
	}
	if len(s.Enum) > 0 {
		list = append(list, strings.Trim(fmt.Sprint(s.Enum), "[]"))
	}
	if s.Default != nil {
		list = append(list, fmt.Sprint("default ", s.Default))
	}
	if s.Nullable {
		list = append(list, "or null")
	}
	return list
}

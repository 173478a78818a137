package things

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// object is the members of a JSON object, each as it was written.
type object map[string]jsontext.Value

// objectOf returns the members of an object; none of anything else.
func objectOf(v jsontext.Value) object {
	all := make(object)
	if v.Kind() == '{' && json.Unmarshal(v, &all) != nil {
		return make(object)
	}
	return all
}

// encode returns an object as JSON, its members in the order of their names.
func (o object) encode() (jsontext.Value, error) {
	return json.Marshal(map[string]jsontext.Value(o), json.Deterministic(true))
}

// merge applies a JSON merge patch (RFC 7396) to a document, which may be missing.
func merge(document, patch jsontext.Value) (jsontext.Value, error) {
	if patch.Kind() != '{' {
		return patch, nil
	}
	all, parts := objectOf(document), objectOf(patch)
	for name, part := range parts {
		if part.Kind() == 'n' {
			delete(all, name)
			continue
		}
		merged, err := merge(all[name], part)
		if err != nil {
			return nil, err
		}
		all[name] = merged
	}
	return all.encode()
}

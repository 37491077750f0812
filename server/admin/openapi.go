package admin

import (
	"reflect"
	"sort"
	"strings"
)

// openAPI describes apiRoutes in OpenAPI 3.1, made from the rows themselves, so
// that what is served and what is described cannot differ. docs/openapi.json is a
// copy that a test keeps.
func openAPI() map[string]any {
	schemas := map[string]any{}
	paths := map[string]any{}
	for i := range apiRoutes {
		r := &apiRoutes[i]
		params := []any{}
		for _, p := range r.params {
			kind := "string"
			if p.integer {
				kind = "integer"
			}
			params = append(params, map[string]any{
				"name": p.name, "in": "query", "required": p.required, "description": p.doc,
				"schema": map[string]any{"type": kind},
			})
		}
		op := map[string]any{
			"summary":    r.summary,
			"parameters": params,
			"responses": map[string]any{
				"200":     jsonContent("done", schemaOf(reflect.TypeOf(r.reply), schemas)),
				"default": jsonContent("refused", schemaOf(reflect.TypeFor[errorReply](), schemas)),
			},
		}
		if r.command != "" {
			op["description"] = "The same as `" + r.command + "` over RESP."
		}
		if r.body != nil {
			body := jsonContent("", schemaOf(reflect.TypeOf(r.body), schemas))
			delete(body, "description")
			op["requestBody"] = body
		}
		ops, _ := paths[r.path].(map[string]any)
		if ops == nil {
			ops = map[string]any{}
			paths[r.path] = ops
		}
		ops[strings.ToLower(r.method)] = op
	}
	return map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "Pawl admin API", "version": "1",
			"description": "What the operator commands do, as JSON. Times are milliseconds, bytes are base 64.",
		},
		"paths": paths,
		"components": map[string]any{
			"schemas":         schemas,
			"securitySchemes": map[string]any{"basic": map[string]any{"type": "http", "scheme": "basic"}},
		},
		"security": []any{map[string]any{"basic": []any{}}, map[string]any{}},
	}
}

func jsonContent(description string, schema any) map[string]any {
	return map[string]any{
		"description": description,
		"content":     map[string]any{"application/json": map[string]any{"schema": schema}},
	}
}

// schemaOf describes one of this package's types. Structs become named schemas.
func schemaOf(t reflect.Type, schemas map[string]any) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		s := schemaOf(t.Elem(), schemas)
		if kind, ok := s["type"].(string); ok {
			s["type"] = []string{kind, "null"}
			return s
		}
		return map[string]any{"anyOf": []any{s, map[string]any{"type": "null"}}}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": []string{"string", "null"}, "contentEncoding": "base64"}
		}
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), schemas)}
	case reflect.Map:
		return map[string]any{"type": "object"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Struct:
		name := strings.TrimSuffix(t.Name(), "JSON")
		if _, known := schemas[name]; !known {
			schemas[name] = nil // in the making, for types within themselves
			properties := map[string]any{}
			var required []string
			describeFields(t, schemas, properties, &required)
			sort.Strings(required)
			schemas[name] = map[string]any{"type": "object", "properties": properties, "required": required}
			if strings.HasSuffix(name, "Body") {
				schemas[name] = map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
			}
		}
		return map[string]any{"$ref": "#/components/schemas/" + name}
	}
	return map[string]any{"type": "integer"}
}

func describeFields(t reflect.Type, schemas, properties map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			describeFields(f.Type, schemas, properties, required)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue // unexported
		}
		s := schemaOf(f.Type, schemas)
		if doc := f.Tag.Get("doc"); doc != "" {
			s["description"] = doc
		}
		properties[name] = s
		*required = append(*required, name)
	}
}

package main

import (
	"fmt"
	"reflect"
	"strings"
)

// resultCSV has the columns of the JSON output, in its order.
func resultCSV[T any](rs []T) *table {
	t := &table{header: jsonFields(reflect.TypeFor[T]())}
	for i := range rs {
		t.add(jsonValues(reflect.ValueOf(rs[i]))...)
	}
	return t
}

// jsonFields lists the names that encoding/json gives the fields of a struct
// whose only structs are embedded ones, or pointers to such.
func jsonFields(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Pointer:
			names = append(names, jsonFields(f.Type.Elem())...)
		case f.Anonymous:
			names = append(names, jsonFields(f.Type)...)
		case name != "-":
			names = append(names, name)
		}
	}
	return names
}

func jsonValues(v reflect.Value) []string {
	var cells []string
	for f, field := range v.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && field.Kind() == reflect.Pointer && field.IsNil():
			cells = append(cells, make([]string, len(jsonFields(field.Type().Elem())))...)
		case f.Anonymous:
			cells = append(cells, jsonValues(reflect.Indirect(field))...)
		case name == "-":
		case field.Kind() == reflect.Pointer && field.IsNil():
			cells = append(cells, "")
		default:
			cells = append(cells, fmt.Sprint(reflect.Indirect(field).Interface()))
		}
	}
	return cells
}

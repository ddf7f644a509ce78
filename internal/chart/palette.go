package chart

// Colors of Okabe and Ito, which people with any kind of color vision can tell apart.
const (
	Black     = "#000000"
	Grey      = "#777777"
	Orange    = "#e69f00"
	Sky       = "#56b4e9"
	Green     = "#009e73"
	Blue      = "#0072b2"
	Vermilion = "#d55e00"
	Purple    = "#cc79a7"
)

// Palette tells up to eight series apart.
var Palette = []string{Vermilion, Blue, Green, Orange, Purple, Sky, Black, Grey}

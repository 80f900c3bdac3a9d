"""Steps of recipes that change a model as a whole: its opset, its names, its ends, its sizes."""

"""New classes next to the classes that a network was trained on."""

"""What pages ask of the demo."""

from django import template

from portal.demo.tour import find_demo

register = template.Library()
register.simple_tag(find_demo, name="find_demo")

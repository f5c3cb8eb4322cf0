"""Where the catalog of each tenant is: a database of its own, so that tenants share no table.

::

                 a folder                             PostgreSQL, of which the schema is "public"
    default      <folder>/catalog.db                  the schema itself
    acme         <folder>/tenants/acme/catalog.db     the schema public_tenant_acme

A tenant is there when its database is; nothing else lists them.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from bittern.catalog.catalog import Catalog
from bittern.catalog.database import database_url
from bittern.catalog.journal.tokens import TENANT, checked_tenant
from bittern.errors import OptionError

#: The tenant that is always there.
DEFAULT = "default"
_FILE = "catalog.db"
_SCHEMAS = sa.text("SELECT nspname FROM pg_namespace WHERE starts_with(nspname, :begin)")


class TenantPlaces:
    """The tenants below a folder, or in a PostgreSQL database."""

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self._folder = folder
        self._url = None if url is None else database_url(url)
        if self._url is not None and self._url.get_backend_name() == "sqlite":
            raise OptionError(
                "a service keeps SQLite in its folder: give the folder, or the URL of PostgreSQL"
            )
        self._schema: str | None = None

    def open(self, tenant: str) -> Catalog:
        """Open a tenant's catalog; of the default tenant, make it if it is not there."""
        if tenant == DEFAULT:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        elif checked_tenant(tenant) not in self.names():
            raise OptionError(f"there is no tenant {tenant!r}")
        return Catalog(self.url_of(tenant), create=True)

    def create(self, tenant: str) -> Catalog:
        """Open a tenant's catalog, and make it if it is not there."""
        checked_tenant(tenant)
        if tenant != DEFAULT and self._url is None:
            self._file(tenant).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        elif tenant != DEFAULT:
            with self.open(DEFAULT) as catalog, catalog.database.writing() as connection:
                name = f'"{self._begin()}{tenant}"'  # letters and digits
                connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {name}")
        elif self._url is None:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Catalog(self.url_of(tenant), create=True)

    def names(self) -> list[str]:
        """All tenants, the default one first."""
        if self._url is None:
            found = [each.parent.name for each in self._folder.glob(f"tenants/*/{_FILE}")]
        else:
            begin = self._begin()
            with self.open(DEFAULT) as catalog, catalog.database.reading() as connection:
                names = connection.execute(_SCHEMAS, {"begin": begin}).scalars()
                found = [name.removeprefix(begin) for name in names]
        return [DEFAULT, *sorted(name for name in found if TENANT.fullmatch(name))]

    def url_of(self, tenant: str) -> str:
        """The URL of a tenant's catalog, for whoever reads it too; with the password if any."""
        checked_tenant(tenant)
        if self._url is None:
            return f"sqlite:///{self._file(tenant).absolute()}"
        url = self._url
        if tenant != DEFAULT:
            own = url.query.get("options", "")
            path = f"-csearch_path={self._begin()}{tenant}"
            options = f"{own if isinstance(own, str) else ' '.join(own)} {path}".strip()
            url = url.update_query_dict({"options": options})
        return url.set(drivername="postgresql").render_as_string(hide_password=False)

    def _file(self, tenant: str) -> Path:
        return self._folder / ("" if tenant == DEFAULT else f"tenants/{tenant}") / _FILE

    def _begin(self) -> str:
        """How the schemas of tenants begin."""
        if self._schema is None:
            with self.open(DEFAULT) as catalog, catalog.database.reading() as connection:
                self._schema = str(connection.execute(sa.text("SELECT current_schema()")).scalar())
        return f"{self._schema}_tenant_"
